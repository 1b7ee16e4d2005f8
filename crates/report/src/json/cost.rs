//! The cost of a run, as JSON. The values differ from run to run.

use serde::Serialize;

use super::lines::Named;

/// The cost of a run. The values differ from run to run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Statistics {
    /// Duration of the run in seconds.
    pub(crate) seconds: f64,
    /// Number of threads.
    pub(crate) threads: usize,
    /// Bytes of memory that the run may use.
    pub(crate) memory_granted: u64,
    /// Peak memory of the process in bytes; null if the system does not report it.
    pub(crate) memory_peak: Option<u64>,
    /// Bytes written to temporary files.
    pub(crate) spilled_bytes: u64,
    /// Counters of the operating system, by name.
    pub(crate) counters: Named<'static, u64>,
    /// The phases, in order.
    pub(crate) phases: Vec<PhaseCost>,
    /// Totals at points in time during the run.
    pub(crate) series: Vec<Sample>,
}

/// The cost of a phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PhaseCost {
    /// Name of the phase.
    pub(crate) name: &'static str,
    /// Duration of the phase in seconds.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Number of reads.
    pub(crate) reads: u64,
    /// Processor time spent in the program itself, in seconds.
    pub(crate) cpu_user_seconds: Option<f64>,
    /// Processor time spent in the operating system, in seconds.
    pub(crate) cpu_system_seconds: Option<f64>,
    /// Total time that threads waited for reads, in seconds.
    pub(crate) read_wait_seconds: f64,
    /// Total time that threads had no work, in seconds.
    pub(crate) idle_seconds: f64,
    /// Total time that threads waited for locks, in seconds, by the name of the lock.
    pub(crate) lock_wait_seconds: Named<'static, f64>,
    /// Bytes written to temporary files.
    pub(crate) spilled_bytes: u64,
    /// Total time that threads waited for temporary files, in seconds.
    pub(crate) spill_wait_seconds: f64,
    /// Peak memory of the process up to the end of the phase, in bytes.
    pub(crate) memory_peak: Option<u64>,
}

/// Totals from the start of the run to one point in time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sample {
    /// Time since the start of the run, in seconds.
    pub(crate) seconds: f64,
    /// Bytes read so far.
    pub(crate) bytes: u64,
    /// Processor time so far, in seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// Memory of the process at this time, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes written to temporary files so far.
    pub(crate) spilled_bytes: u64,
}

/// A phase of the run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Phase {
    /// Name of the phase.
    pub(crate) name: &'static str,
    /// Duration of the phase in seconds.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
}
