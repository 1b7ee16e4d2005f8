//! Raw reads: measures how fast the files can be read if their content is not processed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use jobs::failure::Failure;
use serde::{Deserialize, Serialize};

use super::measure::median;
use crate::matrix::Cache;

/// Number of bytes per read.
const READ_BYTES: u64 = 1 << 20;
/// Size of a share, in bytes. A file is divided into shares, and a thread reads one share at a time.
const SHARE_BYTES: u64 = 16 * READ_BYTES;

/// The measurement of raw reads: all files are read in large blocks, without a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RawRead {
    pub(crate) cache: Cache,
    pub(crate) threads: u16,
    pub(crate) bytes: u64,
    /// The time of each round, in seconds.
    pub(crate) seconds: Vec<f64>,
}

impl RawRead {
    /// The median time of a round, in seconds.
    pub(crate) fn median(&self) -> f64 {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        median(&seconds)
    }

    /// Bytes read per second, computed with the median time.
    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 / self.median().max(1e-9)
    }

    /// Reads the files once more, and adds the time of this round.
    pub(crate) fn round(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        prepare(self.cache, files)?;
        let start = Instant::now();
        self.bytes = read(files, self.threads)?;
        self.seconds.push(start.elapsed().as_secs_f64());
        Ok(())
    }
}

fn failed(path: &Path, cause: &io::Error) -> Failure {
    Failure::unable(format!("{}: cannot be read: {cause}", path.display()))
}

/// Reads all files with `threads` threads. Each thread reads one share after another. Returns the number of bytes read.
fn read(files: &[PathBuf], threads: u16) -> Result<u64, Failure> {
    let mut shares = Vec::new();
    for path in files {
        let length = path.metadata().map_err(|cause| failed(path, &cause))?.len();
        shares.extend((0..length.div_ceil(SHARE_BYTES)).map(|share| (path, share * SHARE_BYTES)));
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut bytes, mut buffer) = (0, vec![0; READ_BYTES as usize]);
        while let Some((path, from)) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
            bytes += read_share(path, *from, &mut buffer).map_err(|cause| failed(path, &cause))?;
        }
        Ok(bytes)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let of_worker = |worker: thread::ScopedJoinHandle<'_, Result<u64, Failure>>| {
            worker.join().unwrap_or_else(|_| Err(Failure::unable("a reader thread ended early")))
        };
        workers.into_iter().map(of_worker).sum()
    })
}

fn read_share(path: &Path, from: u64, buffer: &mut [u8]) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let (mut share, mut bytes) = (file.take(SHARE_BYTES), 0);
    loop {
        match share.read(buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// Loads the files into the operating system's cache, or drops them from it.
pub(crate) fn prepare(cache: Cache, files: &[PathBuf]) -> Result<(), Failure> {
    for path in files {
        let file = File::open(path).map_err(|cause| failed(path, &cause))?;
        match cache {
            Cache::Warm => io::copy(&mut &file, &mut io::sink()).map(drop).map_err(|cause| failed(path, &cause))?,
            Cache::Cold => drop_from_cache(&file, path)?,
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn drop_from_cache(file: &File, path: &Path) -> Result<(), Failure> {
    let dropped = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    dropped.map_err(|error| Failure::unable(format!("{}: cannot be dropped from the cache: {error}", path.display())))
}

#[cfg(not(target_os = "linux"))]
fn drop_from_cache(_file: &File, _path: &Path) -> Result<(), Failure> {
    Err(Failure::usage("--cache cold: this system does not let a program drop files from its cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_once_however_many_threads_read() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = ["a", "b", "empty"].iter().map(|name| folder.path().join(name)).collect();
        for (file, bytes) in files.iter().zip([SHARE_BYTES + 5, 1, 0]) {
            File::create(file).unwrap().set_len(bytes).unwrap();
        }
        for threads in [0, 1, 3] {
            assert_eq!(read(&files, threads).unwrap(), SHARE_BYTES + 6);
        }
        assert!(read(&[folder.path().join("missing")], 1).unwrap_err().text.contains("missing"));
    }
}
