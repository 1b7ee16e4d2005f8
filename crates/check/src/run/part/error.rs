//! Why sweeping a range produced no part.

use std::fmt;

use findings::FileRange;
use sums::wire::SumsError;

/// Why sweeping a range produced no part.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The part or the answer cannot be written, or the question belongs to another run.
    #[error(transparent)]
    Sums(#[from] SumsError),
    /// Facts were lost, because temporary files could not be written or read.
    #[error("{0}")]
    Lost(String),
    /// The sweep needed the maps of a page outside the range, which is a defect of this program.
    #[error(
        "pages {}: the maps of other pages were needed to sweep them; this is a defect of mdfsck: please report it, and check \
         without a plan", Stretch(.0)
    )]
    Beyond(FileRange),
}

/// Formats the pages of a range in the way that messages print them.
struct Stretch<'r>(&'r FileRange);

impl fmt::Display for Stretch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileRange { file_id, first, .. } = *self.0;
        write!(f, "({file_id}:{first}) to ({file_id}:{})", self.0.end().saturating_sub(1))
    }
}
