//! Objects in object storage as files: `s3://`, `az://`, `gs://` and `https://` behind [`source::storage`].
//!
//! Callers read synchronously, from many threads. A few threads of this crate make the requests (`runtime`) and keep
//! the answers in pieces (`pool`) until they are read. Sequential reads are recognised (`streams`) and get large pieces
//! ahead of time, scattered reads get small ones. All bytes come from the object as it was when opened: each request
//! names the expected ETag, so that an object that is overwritten meanwhile is an error and never a mixture of two.
//!
//! No text that leaves this crate contains a secret (`fault`).

#![warn(clippy::indexing_slicing)]

mod fault;
mod location;
mod objects;
mod pace;
mod pool;
mod profile;
mod reader;
mod redirects;
mod settings;
mod stores;
mod streams;
mod web;

pub use location::{SCHEMES, is_known};
pub use objects::Objects;
pub use pool::MOST_HELD_BYTES;
pub use settings::Settings;
