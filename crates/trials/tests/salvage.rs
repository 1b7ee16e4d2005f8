//! What damage costs a table, and what of its rows can be had nevertheless.
#![allow(clippy::unwrap_used)]

#[path = "salvage/losses.rs"]
mod losses;
