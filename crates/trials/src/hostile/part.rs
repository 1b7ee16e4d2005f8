//! Reads the files, called parts, in which the tasks of a distributed check store their results.

use std::sync::LazyLock;

use catalog::Database;
use check::Silent;
use check::part::{Part, SumsError, frames, merge, sweeper};
use findings::{FileRange, Options};
use source::MemoryFiles;
use sums::HashKey;

/// The head of the part, that is its first bytes. The hashes in the part also cover the head.
const HEAD: &[u8] = b"hostile";

/// A small lab database, and the payload of the part that a check with a single task writes.
struct Swept {
    source: MemoryFiles,
    database: Database,
    ranges: Vec<FileRange>,
    payload: Vec<u8>,
}

fn options() -> Options {
    Options {
        max_threads: 1,
        constraints: true,
        identities: true,
        hash_key: Some(HashKey::new([5; HashKey::BYTES])),
        ..Options::default()
    }
}

static SWEPT: LazyLock<Option<Swept>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().ok()?;
    let written = lab::write(&lab::orders::orders(lab::Version::V852, 3, 1 << 20), folder.path()).ok()?;
    let files = written.files.iter().map(|path| Some((path.clone(), std::fs::read(path).ok()?)));
    let source = MemoryFiles::open(files.collect::<Option<Vec<_>>>()?).ok()?;
    let database = catalog::load(&source);
    let (ranges, part) = sweeper(&source, &database, &options(), &Silent, |sweeper| {
        let sweeper = sweeper?;
        let ranges = sweeper.ranges(u64::MAX);
        let mut part = Vec::new();
        sweeper.sweep(*ranges.first()?, HEAD, &Silent, &mut part).ok()?;
        Some((ranges, part))
    })?;
    Some(Swept { source, database, ranges, payload: frames::unwrap(&part)? })
});

/// The bytes of a complete part without their hashes: the first input for [`part`].
pub fn part_payload() -> Vec<u8> {
    SWEPT.as_ref().map_or_else(Vec::new, |swept| swept.payload.clone())
}

/// Merges a part that has these bytes and right hashes. An attacker who knows the key can make such a part. The merge
/// must refuse the part, or it must return a report.
pub fn part(bytes: &[u8]) {
    let Some(swept) = SWEPT.as_ref() else { return };
    let options = options();
    let part = options.hash_key.as_ref().map(|key| frames::wrap(key, HEAD, bytes)).unwrap_or_default();
    let mut next = Some(Ok(Part { head: HEAD.to_vec(), from: Box::new(part.as_slice()) }));
    let report = merge::<SumsError>(
        &swept.source,
        &swept.database,
        &options,
        &Silent,
        &swept.ranges,
        |_| Ok(()),
        || next.take(),
    );
    if let Ok(report) = report {
        let names = report.names();
        assert!(report.findings.iter().all(|finding| !finding.text(&names).is_empty()));
    }
}
