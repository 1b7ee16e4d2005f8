//! The cost of a run, in JSON. The values differ from run to run.

use serde::Serialize;

use super::lines::Named;

/// What the run cost. It differs from run to run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Statistics {
    /// Time of the run.
    pub(crate) seconds: f64,
    /// Threads.
    pub(crate) threads: usize,
    /// Memory that the run may take, in bytes.
    pub(crate) memory_granted: u64,
    /// Memory that the process took at most, in bytes; null where the system does not report it.
    pub(crate) memory_peak: Option<u64>,
    /// Bytes that were written to temporary files.
    pub(crate) spilled_bytes: u64,
    /// Counters of the system, by name.
    pub(crate) counters: Named<'static, u64>,
    /// The phases, in order.
    pub(crate) phases: Vec<PhaseCost>,
    /// Totals at moments of the run.
    pub(crate) series: Vec<Sample>,
}

/// What a phase cost.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PhaseCost {
    /// Name of the phase.
    pub(crate) name: &'static str,
    /// Its time.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Reads.
    pub(crate) reads: u64,
    /// Processor time in the program.
    pub(crate) cpu_user_seconds: Option<f64>,
    /// Processor time in the system.
    pub(crate) cpu_system_seconds: Option<f64>,
    /// Time that threads waited for reads.
    pub(crate) read_wait_seconds: f64,
    /// Time that threads had nothing to do.
    pub(crate) idle_seconds: f64,
    /// Time that threads waited for locks, by the name of the lock.
    pub(crate) lock_wait_seconds: Named<'static, f64>,
    /// Bytes that were written to temporary files.
    pub(crate) spilled_bytes: u64,
    /// Time that threads waited for temporary files.
    pub(crate) spill_wait_seconds: f64,
    /// Memory that the process took at most until the end of the phase, in bytes.
    pub(crate) memory_peak: Option<u64>,
}

/// Totals at one moment of the run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sample {
    /// Time since the start.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Processor time.
    pub(crate) cpu_seconds: Option<f64>,
    /// Memory of the process in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes that were written to temporary files.
    pub(crate) spilled_bytes: u64,
}

/// A phase of the run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Phase {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its time.
    pub(crate) seconds: f64,
    /// Bytes read.
    pub(crate) bytes: u64,
}
