//! What damage costs a table, and what of its rows can be had nevertheless.
#![allow(clippy::unwrap_used)]

#[path = "salvage/files.rs"]
mod files;
#[path = "salvage/found.rs"]
mod found;
#[path = "salvage/losses.rs"]
mod losses;
#[path = "salvage/round_trip.rs"]
mod round_trip;
#[path = "salvage/rows_found.rs"]
mod rows_found;
#[path = "salvage/what_is_lost.rs"]
mod what_is_lost;
