//! Lab databases, read by all other crates: sound, damaged and hostile.

mod advice;
mod base_tables;
mod collations;
mod damage;
mod encrypted;
mod expensive;
mod fields;
mod fixed_pages;
mod histories;
mod hostile;
mod image;
mod real_backups;
mod salvage;
mod several_files;
mod sound;
mod values;
mod workloads;
mod xpress;
