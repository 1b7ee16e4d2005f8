//! Recovers databases of the lab and real databases with their logs.

mod chains;
mod common;
mod corpus;
mod real_chains;
mod workloads;
