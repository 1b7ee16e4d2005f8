//! A database as recovery would leave it: its files, with the pages that its log changes recovered in memory.
//!
//! [`Analysis::new`] reads the log from the start of recovery on, and finds out whether it belongs to the database and
//! what it would change; [`Recovery::new`] recovers the pages: redo by the links of page LSNs, then undo of the
//! transactions that were open at the end. [`RecoveredPages`] shows the result as a [`source::PageSource`], so that
//! checks see the recovered database without knowing about the log. Nothing is written to the files. docs/format/log.md
//! has the facts.

#![warn(clippy::indexing_slicing)]

mod analysis;
mod apply;
mod layout;
mod losers;
mod misfit;
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
