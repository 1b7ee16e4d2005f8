//! Objects in object storage as files: `s3://`, `az://`, `gs://` and `https://` URLs for [`source::storage`].
//!
//! Callers read synchronously, from many threads. A few threads of this crate send the requests (`runtime`) and keep
//! the answers in pieces (`pool`) until they are read. Sequential reads are recognized (`streams`) and use large pieces
//! that are requested ahead of time; scattered reads use small pieces. All bytes come from the version of the object
//! that was opened: each request names the expected ETag. If an object is overwritten in the meantime, the read returns
//! an error, and never a mixture of both versions.
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
mod time_limits;
mod web;

pub use location::{SCHEMES, is_known};
pub use objects::Objects;
pub use settings::{MOST_HELD_BYTES, Settings};
