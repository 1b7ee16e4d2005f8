//! Event files of real servers, and made-up sequences of checkpoints.

mod corpus;
mod stories;
