//! Databases of the lab and real ones, with their logs, as recovery leaves them.

mod chains;
mod common;
mod corpus;
mod real_chains;
mod workloads;
