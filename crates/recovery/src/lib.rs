//! A database as recovery would leave it: its files as they are, with the pages that its log changes made in memory.
//!
//! [`Analysis::new`] reads the log from where recovery starts and says whether it belongs and what it would do;
//! [`Recovery::new`] makes the pages: redo by the links of page LSNs, then the transactions that had not ended are taken
//! back. [`RecoveredPages`] shows the result as a [`source::PageSource`], so that checks see the recovered database and know
//! nothing of the log. Nothing is written to the files. docs/format/log.md has the facts.

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
