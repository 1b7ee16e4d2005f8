//! Pages against their log: sound, damaged, and what cannot be compared.

mod common;
mod corpus;
mod damage;
mod limits;
mod workloads;
