//! Event files of real servers, and generated sequences of checkpoints.

mod corpus;
mod stories;
