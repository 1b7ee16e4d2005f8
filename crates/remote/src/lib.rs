//! Objects in object storage as files: `s3://`, `az://`, `gs://` and `https://` behind [`source::storage`].
//!
//! What is above reads synchronously, from many threads. Here, requests are made by a few threads of their own (`runtime`),
//! and what they bring is kept in pieces (`pool`) until it was read: sequential reads are recognised (`streams`) and get
//! large pieces ahead of time, scattered reads small ones. An object is read as it was when it was opened: each request says
//! which ETag it expects, so that an object that is overwritten meanwhile is an error and never a mixture of two.
//!
//! No text that leaves this crate has a secret in it (`fault`).

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
