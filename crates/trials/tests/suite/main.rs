//! Tests in which all other crates read lab databases: sound, damaged and hostile ones.

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
mod real_damage;
mod redact;
mod salvage;
mod several_files;
mod sound;
mod values;
mod workloads;
mod xpress;
