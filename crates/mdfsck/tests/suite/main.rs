//! The program run on what the lab writes: verdicts, limits of memory, faults of the machine.

mod backups;
mod chain_verify;
mod checkpoints;
mod damaged_backups;
mod faults;
mod hostile_backups;
mod json_lines;
mod log_text;
mod memory;
mod restore_chains;
mod unusable_logs;
mod workloads;
