//! Tests of losses and of salvage: the rows that a damaged table has lost, and the rows that can be recovered.
#![allow(clippy::unwrap_used)]

mod files;
mod found;
mod losses;
mod round_trip;
mod rows_found;
mod what_is_lost;
