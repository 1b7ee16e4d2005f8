//! Shows a database in the state that recovery would produce. The pages come from the database files. Pages that the
//! log changes are recovered in memory.
//!
//! [`Analysis::new`] reads the log from the start of recovery. It finds out whether the log belongs to the database and
//! what the log would change. [`Recovery::new`] recovers the pages. Redo compares the LSN of each page with the page
//! LSNs stored in the records. Undo reverses the changes of the transactions that were open at the end of the log.
//! [`RecoveredPages`] shows the result as a [`source::PageSource`], so that checks see the recovered database and need
//! not know about the log. Nothing is written to the files. The facts about the log format are in docs/format/log.md.

#![warn(clippy::indexing_slicing)]

mod analysis;
mod applied;
mod apply;
mod layout;
mod log_damage;
mod losers;
mod making;
mod misfit;
mod on_disk;
mod order;
mod overlay;
mod page;
mod past;
mod reached;
mod refusal;
mod settings;
mod start;
mod stop;
mod store;
mod undo;

pub use analysis::{Analysis, RestoreStart};
pub use applied::{Applied, NotRecovered};
pub use apply::Recovery;
pub use log_damage::LogDamage;
pub use misfit::Misfit;
pub use overlay::RecoveredPages;
pub use past::PastPage;
pub use reached::{Reached, RedonePages};
pub use refusal::Refusal;
pub use settings::Settings;
pub use start::Start;
pub use stop::Stop;
pub use store::PageWork;
