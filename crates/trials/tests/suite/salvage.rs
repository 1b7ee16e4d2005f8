//! What damage costs a table, and what of its rows can be had nevertheless.
#![allow(clippy::unwrap_used)]

mod files;
mod found;
mod losses;
mod round_trip;
mod rows_found;
mod what_is_lost;
