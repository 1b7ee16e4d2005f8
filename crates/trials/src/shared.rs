//! Values that several trials share. Each value is created when a trial first needs it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A place for a value that is created once.
type Place<T> = Arc<OnceLock<Arc<T>>>;

/// Values, each identified by a number. They are in the order of their creation.
pub(crate) struct Shared<T>(Mutex<Vec<(u64, Place<T>)>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Shared<T> {
    /// The value with this number. At most `kept` values stay in memory.
    pub(crate) fn get(&self, number: u64, kept: usize, make: impl FnOnce() -> T) -> Arc<T> {
        let place = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = places.iter().find(|(own, _)| *own == number).map(|(_, place)| Arc::clone(place));
            known.unwrap_or_else(|| {
                if places.len() >= kept {
                    places.remove(0);
                }
                let place = Place::default();
                places.push((number, Arc::clone(&place)));
                place
            })
        };
        Arc::clone(place.get_or_init(|| Arc::new(make())))
    }
}
