//! Compares pages with their log: sound pages, damaged pages, and pages that cannot be compared.

mod common;
mod corpus;
mod damage;
mod limits;
mod workloads;
