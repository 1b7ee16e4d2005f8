//! Pages against their log: sound pages, damaged ones, and pages that cannot be compared.

mod common;
mod corpus;
mod damage;
mod limits;
mod workloads;
