//! All objects of a run. Each object is looked up once and opened at most once, until it is forgotten.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use source::storage::{Entry, Kind, Object, ObjectStorage};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OnceCell, Semaphore};

use crate::fault::{self, Act};
use crate::location::{Location, Place};
use crate::pool::Pool;
use crate::reader::{Reader, Remote, Version, body};
use crate::settings::Settings;
use crate::stores::{self, Patience};

/// Number of threads that send requests; they also decrypt and copy the answers.
const THREADS: usize = 2;
/// Number of bytes that are read when an object is opened. The same answer contains the length of the object.
const START_BYTES: u64 = 256 << 10;
/// The maximum number of objects that are opened at the same time before they are needed.
const MOST_OPENED_AT_ONCE: usize = 32;
/// The most objects in one folder. A bucket with more objects is not a folder of backups.
const MOST_ENTRIES: usize = 1_000_000;
/// The longest time for a listing; a listing that takes longer counts as endless.
const MOST_LIST_TIME: Duration = Duration::from_secs(300);

/// The objects in all storages, by URL.
pub struct Objects(Arc<Shared>);

struct Shared {
    settings: Arc<Settings>,
    pool: Arc<Pool>,
    numbers: AtomicU32,
    stores: Mutex<HashMap<Client, Arc<OnceCell<Opened>>>>,
    looked: Mutex<HashMap<String, Arc<OnceCell<Looked>>>>,
    /// Objects that `forget` removed from `looked` because no reader used them. If such an object has not changed on
    /// the server, it need not be opened again.
    former: Mutex<HashMap<String, Arc<Remote>>>,
    opening: Semaphore,
}

/// The runtime that sends requests. It exists until the process ends, so that every waiting thread gets its piece.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        threads_can_be_had(THREADS)?;
        // The call fails if another part of the program has already installed a cryptography provider for TLS. This
        // failure is harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("storage").enable_all().build()
    });
    runtime.as_ref().map_err(|cause| io::Error::new(cause.kind(), cause.to_string()))
}

/// Returns an error if the system cannot start this number of threads. Without this check, the runtime would panic
/// instead of returning an error.
fn threads_can_be_had(threads: usize) -> io::Result<()> {
    let all_run = Arc::new(Barrier::new(threads + 1));
    let wait = |_| {
        let all_run = Arc::clone(&all_run);
        thread::Builder::new().spawn(move || all_run.wait())
    };
    let started: Vec<_> = (0..threads).map(wait).collect();
    let failed = started.iter().find_map(|thread| thread.as_ref().err());
    let failed = failed
        .map(|cause| io::Error::new(cause.kind(), format!("no thread for object storage can be started: {cause}")));
    match failed {
        // The threads that were started wait at the barrier until the process ends.
        Some(cause) => Err(cause),
        None => {
            all_run.wait();
            started.into_iter().flatten().for_each(|thread| drop(thread.join()));
            Ok(())
        }
    }
}

/// The key of a client. All objects with an equal key share one client. The key says which objects the client can
/// access, and how long the client repeats failing requests.
#[derive(PartialEq, Eq, Hash)]
struct Client {
    place: Place,
    /// The query that grants access, or, for a web server, the URL of the object.
    access: String,
    patience: Patience,
}

/// A client, or the reason why it could not be created.
type Opened = Result<Arc<dyn ObjectStore>, Fault>;
/// The object or folder at a URL, or the reason why it could not be looked up.
type Looked = Result<There, Fault>;

#[derive(Clone)]
enum There {
    Object(Arc<Remote>),
    Folder,
}

/// An error that can be cloned, because several callers may need it.
#[derive(Clone, Debug)]
struct Fault {
    kind: io::ErrorKind,
    text: String,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self { kind: error.kind(), text: error.to_string() }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind, fault.text)
    }
}

fn refused(text: String) -> Fault {
    Fault { kind: io::ErrorKind::InvalidInput, text }
}

impl Objects {
    /// Creates the storage for these settings. It sends no request before the first URL is used.
    pub fn new(settings: Settings) -> Self {
        let pool = Arc::new(Pool::new(settings.held_bytes));
        Self(Arc::new(Shared {
            settings: Arc::new(settings),
            pool,
            numbers: AtomicU32::new(1),
            stores: Mutex::default(),
            looked: Mutex::default(),
            former: Mutex::default(),
            opening: Semaphore::new(MOST_OPENED_AT_ONCE),
        }))
    }

    fn look(&self, url: &str) -> io::Result<There> {
        let shared = &self.0;
        Ok(runtime()?.block_on(shared.look(url))?)
    }
}

impl Shared {
    /// Looks up `url` and keeps the result.
    async fn look(self: &Arc<Self>, url: &str) -> Looked {
        let cell = {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(looked.entry(url.to_owned()).or_default())
        };
        cell.get_or_init(|| self.look_now(url)).await.clone()
    }

    async fn look_now(self: &Arc<Self>, url: &str) -> Looked {
        let location = self.location(url)?;
        if location.is_folder {
            return Ok(There::Folder);
        }
        if let Some(object) = self.unchanged(url, &location).await {
            return Ok(There::Object(object));
        }
        match self.open(url, &location).await {
            Ok(object) => Ok(There::Object(object)),
            Err(fault) if fault.kind == io::ErrorKind::NotFound && location.place != Place::Web => {
                // The URL may be a folder: a common prefix of the names of other objects.
                match self.is_prefix(url, &location).await {
                    Ok(true) => Ok(There::Folder),
                    _ => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        }
    }

    /// Returns the object in `former` for this URL, if it still exists on the server and has not changed since it was
    /// opened.
    async fn unchanged(&self, url: &str, location: &Location) -> Option<Arc<Remote>> {
        let remote = self.former.lock().unwrap_or_else(PoisonError::into_inner).remove(url)?;
        if remote.failed.get().is_some() {
            return None;
        }
        let _turn = self.opening.acquire().await;
        let store = self.store(url, &location.place, Patience::Little).await.ok()?;
        // If the server does not allow this HEAD request, the object is opened again.
        let answer = store.get_opts(&remote.path, GetOptions { head: true, ..GetOptions::default() }).await.ok()?;
        Version::of(&answer.meta).is_same(&remote.version).then_some(remote)
    }

    fn location(&self, url: &str) -> Result<Location, Fault> {
        Location::of(url, stores::has_azure_account(url, &self.settings)).map_err(refused)
    }

    async fn store(&self, url: &str, place: &Place, patience: Patience) -> Opened {
        // All objects in a folder share the client for the folder's query.
        let access = match place {
            Place::Web => url.to_owned(),
            _ => self.settings.query(url).unwrap_or_default().to_owned(),
        };
        let cell = {
            let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(stores.entry(Client { place: place.clone(), access, patience }).or_default())
        };
        let open = async || {
            let opened = stores::open(place, url, &self.settings, patience).await;
            opened.map_err(|error| fault::of(&error, Act::Open, place, &self.settings).into())
        };
        cell.get_or_init(open).await.clone()
    }

    /// Opens an object. One request reads its start, and its answer also contains the length and the tag of the object.
    async fn open(self: &Arc<Self>, url: &str, location: &Location) -> Result<Arc<Remote>, Fault> {
        let place = &location.place;
        let told = |error| Fault::from(fault::of(&error, Act::Open, place, &self.settings));
        let path = match place {
            Place::Web => Path::from("object"),
            _ => path(&location.key)?,
        };
        let _turn = self.opening.acquire().await;
        let store = self.store(url, place, Patience::Little).await?;
        let range = GetOptions { range: Some(GetRange::Bounded(0..START_BYTES)), ..GetOptions::default() };
        let (version, start) = match store.get_opts(&path, range).await {
            Ok(answer) => {
                let version = Version::of(&answer.meta);
                // The length must fit into an `i64`, so that sums of offsets cannot overflow.
                let is_possible = i64::try_from(version.length).is_ok();
                match body(answer, START_BYTES).await.map_err(told)? {
                    Some(start) if is_possible => (version, start),
                    _ => return Err(Fault { kind: io::ErrorKind::InvalidData, text: fault::TOO_LONG.to_owned() }),
                }
            }
            // An empty object has no bytes, so any range is outside it.
            Err(error) if fault::is_outside(&error) => {
                let whole = store.get_opts(&path, GetOptions::default()).await.map_err(told)?;
                match whole.meta.size {
                    0 => (Version::of(&whole.meta), Bytes::new()),
                    _ => return Err(Fault { kind: io::ErrorKind::Other, text: fault::NO_RANGES.to_owned() }),
                }
            }
            Err(error) => return Err(told(error)),
        };
        let remote = Remote {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            version,
            path,
            place: place.clone(),
            store: self.store(url, place, Patience::Much).await?,
            settings: Arc::clone(&self.settings),
            pool: Arc::clone(&self.pool),
            runtime: runtime()?.handle().clone(),
            failed: OnceLock::new(),
        };
        self.pool.state().keep(remote.number, start);
        Ok(Arc::new(remote))
    }

    /// Whether the name of any object begins with the name in `location` and a slash.
    async fn is_prefix(&self, url: &str, location: &Location) -> Result<bool, Fault> {
        let place = &location.place;
        let store = self.store(url, place, Patience::Little).await?;
        let prefix = path(&location.key)?;
        let first = within_time(async { Ok(store.list(Some(&prefix)).try_next().await) }).await?;
        first.map(|found| found.is_some()).map_err(|error| fault::of(&error, Act::List, place, &self.settings).into())
    }

    async fn list(&self, url: &str) -> Result<Vec<Entry>, Fault> {
        let location = self.location(url)?;
        let place = &location.place;
        if *place == Place::Web {
            return Err(refused("a folder on a web server cannot be listed; name each file by its URL".to_owned()));
        }
        let store = self.store(url, place, Patience::Little).await?;
        let prefix = if location.key.is_empty() { None } else { Some(path(&location.key)?) };
        let listed = within_time(async { Ok(store.list_with_delimiter(prefix.as_ref()).await) }).await?;
        let listed = listed.map_err(|error| Fault::from(fault::of(&error, Act::List, place, &self.settings)))?;
        if listed.objects.len() + listed.common_prefixes.len() > MOST_ENTRIES {
            return Err(refused(format!(
                "more than {MOST_ENTRIES} objects are in one folder; name a subfolder or a pattern"
            )));
        }
        // Each entry includes `is_folder`, because an object and a folder may have the same name.
        let mut entries = BTreeSet::new();
        let mut add = |key: &Path, is_folder| {
            let path = PathBuf::from(location.url_of(url, key.as_ref()));
            entries.insert((path, is_folder));
        };
        listed.objects.iter().for_each(|object| add(&object.location, false));
        listed.common_prefixes.iter().for_each(|folder| add(folder, true));
        Ok(entries.into_iter().map(|(path, is_folder)| Entry { path, is_folder }).collect())
    }
}

/// The result of a listing, or an error if the listing takes too long.
async fn within_time<T>(list: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let timed_out = |_| Fault {
        kind: io::ErrorKind::TimedOut,
        text: "the list of objects did not end within 5 minutes; name a subfolder or a pattern".to_owned(),
    };
    tokio::time::timeout(MOST_LIST_TIME, list).await.map_err(timed_out)?
}

/// Converts the name of an object to the form that the client needs.
fn path(key: &str) -> Result<Path, Fault> {
    Path::parse(key).map_err(|_| {
        refused("mdfsck does not read names with empty parts ('//') or with '.' or '..' as parts".to_owned())
    })
}

impl ObjectStorage for Objects {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Object>> {
        match self.look(url)? {
            There::Object(remote) => Ok(Arc::new(Reader(remote))),
            There::Folder => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder of objects")),
        }
    }

    fn kind(&self, url: &str) -> io::Result<Kind> {
        Ok(match self.look(url)? {
            There::Object(remote) => Kind::File { bytes: remote.version.length },
            There::Folder => Kind::Folder,
        })
    }

    fn list(&self, url: &str) -> io::Result<Vec<Entry>> {
        Ok(runtime()?.block_on(self.0.list(url))?)
    }

    fn announce(&self, urls: &[&str]) {
        let Ok(runtime) = runtime() else { return };
        for url in urls {
            let (shared, url) = (Arc::clone(&self.0), (*url).to_owned());
            runtime.spawn(async move { shared.look(&url).await.is_ok() });
        }
    }

    fn forget(&self) {
        let mut former = HashMap::new();
        let mut looked = self.0.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.retain(|url, cell| match cell.get() {
            Some(Ok(There::Object(remote))) if Arc::strong_count(remote) == 1 => {
                former.insert(url.clone(), Arc::clone(remote));
                false
            }
            // The object is open, or it is being looked up right now.
            Some(Ok(There::Object(_))) | None => true,
            Some(_) => false,
        });
        *self.0.former.lock().unwrap_or_else(PoisonError::into_inner) = former;
        let mut stores = self.0.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, cell| !matches!(cell.get(), Some(Err(_))));
    }

    fn held_bytes(&self) -> u64 {
        let is_used = !self.0.stores.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_used { self.0.settings.held_bytes } else { 0 }
    }
}
