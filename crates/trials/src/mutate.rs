//! Damage, done systematically: every field of every structure, by every verb, from a seed.
//!
//! [`Survey`] finds the sites: the fields that the catalog of `format` names, on all pages of a database, and the columns
//! of rows, which the database's own catalog names. A [`Verb`] changes one of them. [`seal`] makes the page's protection
//! right again, so that nothing but the field tells of the damage. [`damages`] does what befalls whole pages, extents, chains
//! and files. [`exemptions`] lists what may go unnoticed, and why.

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
