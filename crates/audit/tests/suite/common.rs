//! Functions for the tests with lab databases.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;

use findings::{Finding, LogAudit};
use format::PageId;
use lab::workload::Crashed;
use log::Log;
use source::{DataFiles, ExtentSet};

pub struct OnDisk {
    _folder: tempfile::TempDir,
    pub data: Vec<PathBuf>,
    pub log: PathBuf,
    pub more_logs: Vec<PathBuf>,
}

pub fn on_disk(crashed: &Crashed) -> OnDisk {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, bytes): &(String, Vec<u8>)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let data = crashed.files.iter().map(write).collect();
    let more_logs = crashed.more_logs.iter().map(write).collect();
    OnDisk { data, log: write(&crashed.log), more_logs, _folder: folder }
}

pub fn audit_within(files: &OnDisk, memory_bytes: u64) -> Result<LogAudit, recovery::Refusal> {
    audit_of(files, memory_bytes, None)
}

/// Compares only the pages of these extents, and those that the log names.
pub fn audit_of(files: &OnDisk, memory_bytes: u64, changed: Option<&ExtentSet>) -> Result<LogAudit, recovery::Refusal> {
    let source = DataFiles::open(&files.data).unwrap();
    let logs: Vec<PathBuf> = std::iter::once(&files.log).chain(&files.more_logs).cloned().collect();
    let log = Log::open(&logs)?;
    audit::audit_of(&source, &catalog::load(&source), &log, (memory_bytes, changed))
}

pub fn audit(crashed: &Crashed) -> LogAudit {
    audit_within(&on_disk(crashed), 64 << 20).unwrap()
}

pub fn texts(audit: &LogAudit) -> Vec<String> {
    let names = findings::Names { database: "d", database_id: 1, command: "CHECKDB" };
    audit.findings.iter().map(|finding| format!("{} {}", finding.check.id, finding.text(&names))).collect()
}

/// Page and check ID of each finding.
pub fn found(audit: &LogAudit) -> Vec<(PageId, &'static str)> {
    audit.findings.iter().map(|finding: &Finding| (finding.page.unwrap(), finding.check.id)).collect()
}
