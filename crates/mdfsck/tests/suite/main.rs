//! Runs the program on lab databases. Tests verdicts, memory limits, and faults of the machine.

mod backups;
mod chain_verify;
mod checkpoints;
mod damaged_backups;
mod evidence;
mod faults;
mod hostile_backups;
mod imports;
mod json_lines;
mod ledgers;
mod log_text;
mod memory;
mod moving;
mod planned_ledgers;
mod redact;
mod redo;
mod restore_chains;
mod snapshots;
mod table_statistics;
mod unusable_logs;
mod words;
mod workloads;
