//! Databases with their logs, of the lab and real ones, as recovery leaves them.

mod chains;
mod common;
mod corpus;
mod real_chains;
mod workloads;
