//! Event files of real servers, and made-up stories of checkpoints.

mod corpus;
mod stories;
