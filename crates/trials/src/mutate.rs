//! Systematic damage: every field of every structure is changed by every verb, from a seed.
//!
//! [`Survey`] finds the sites: the fields that the catalog of `format` names, on all pages of a database, and the
//! columns of rows, which the database's own catalog describes. A [`Verb`] changes a site. [`seal`] corrects the page
//! protection, so that only the changed field can reveal the damage. [`damages`] damages whole pages, extents, chains
//! and files. [`exemptions`] lists damage that may go unnoticed, with reasons.

mod columns;
pub mod exemptions;
mod names;
mod pages;
mod random;
mod seal;
mod sites;
mod structures;
mod verbs;

pub use names::names_any;
pub use pages::{PageRole, Pages};
pub use random::Random;
pub use seal::{PROTECTED_WORD, seal};
pub use sites::{Site, Sites, Survey};
pub use structures::{Damage, damages};
pub use verbs::Verb;
