//! A database in the state that recovery would produce: its files, with the pages that its log changes recovered in
//! memory.
//!
//! [`Analysis::new`] reads the log from the start of recovery. It finds out whether the log belongs to the database and
//! what the log would change. [`Recovery::new`] recovers the pages: redo follows the page LSNs stored in the records,
//! and undo takes back the transactions that were open at the end. [`RecoveredPages`] shows the result as a
//! [`source::PageSource`], so that checks see the recovered database and need not know about the log. Nothing is
//! written to the files. docs/format/log.md describes the facts.

#![warn(clippy::indexing_slicing)]

mod analysis;
mod apply;
mod layout;
mod losers;
mod misfit;
mod order;
mod overlay;
mod page;
mod past;
mod settings;
mod start;
mod stop;
mod store;
mod undo;

pub use analysis::{Analysis, Refusal, RestoreStart};
pub use apply::{Applied, NotRecovered, Recovery};
pub use misfit::Misfit;
pub use overlay::RecoveredPages;
pub use past::PastPage;
pub use settings::Settings;
pub use start::Start;
pub use stop::Stop;
pub use store::PageWork;
