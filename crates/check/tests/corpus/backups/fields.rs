//! Changes one field of a backup that the lab writes, or truncates the file. The report must contain exactly the
//! expected findings.

use lab::backup::{BackupOptions, Container, Set, backup};
use lab::{Version, orders};
use libtest_mimic::{Failed, Trial};

use super::check;
use super::damage::{blocks, records};

/// Changes the bytes of a backup.
type Change = fn(&mut Vec<u8>);

/// The changed field, the change, and the check IDs of all expected findings.
type Case = (&'static str, Change, &'static [&'static str]);

/// Cases for an uncompressed backup WITH CHECKSUM.
const PLAIN: [Case; 10] = [
    (
        "the checksum of a block's header",
        |bytes| flip(bytes, |bytes| block(bytes, b"MSCI") + 50),
        &["backup.block-checksum"],
    ),
    (
        "the checksum of a stream's header",
        |bytes| flip(bytes, |bytes| stream(bytes, b"VOLB", b"SPAD") + 20),
        &["backup.stream-checksum"],
    ),
    (
        "the configuration at the start",
        |bytes| flip(bytes, |bytes| stream(bytes, b"MSCI", b"MQCI") + 22 + 5),
        &["backup.configuration"],
    ),
    (
        "the checksum of the data",
        |bytes| flip(bytes, |bytes| stream(bytes, b"MSDA", b"CSUM") + 25),
        &["backup.data-checksum"],
    ),
    (
        "a log block",
        |bytes| flip(bytes, |bytes| stream(bytes, b"MSTL", b"MQTL") + 22 + 5),
        &["backup.data-checksum", "backup.log-block"],
    ),
    (
        "cut where the data begins",
        |bytes| bytes.truncate(block(bytes, b"MSDA")),
        &["backup.pages-missing", "backup.truncated", "backup.set-incomplete", "allocation.fixed-page-invalid"],
    ),
    (
        "cut before the configuration at the end",
        |bytes| bytes.truncate(block(bytes, b"MSLS")),
        &["backup.truncated", "backup.set-incomplete"],
    ),
    ("cut before the end of the set", |bytes| bytes.truncate(block(bytes, b"ESET")), &["backup.set-incomplete"]),
    ("the last filemark lost", |bytes| bytes.truncate(bytes.len() - 512), &["backup.truncated"]),
    ("bytes after the end", |bytes| bytes.extend([0xA5; 2048]), &["backup.block-type", "backup.lost-bytes"]),
];

const COMPRESSED: [Case; 2] = [
    ("the tag of a record", |bytes| flip(bytes, |bytes| records(bytes)[0].start), &["backup.record-lost"]),
    ("the payload of a record", |bytes| flip(bytes, |bytes| bytes.len() / 2), &["backup.record-checksum"]),
];

/// One test per case.
pub(super) fn trials() -> Vec<Trial> {
    let plain = PLAIN.into_iter().map(|case| trial("backup of the lab", None, case));
    let compressed = Some(Container::Version2);
    plain.chain(COMPRESSED.into_iter().map(|case| trial("compressed backup of the lab", compressed, case))).collect()
}

fn trial(what: &str, container: Option<Container>, (name, change, expected): Case) -> Trial {
    Trial::test(format!("backups: {name} ({what})"), move || {
        let folder = tempfile::tempdir()?;
        let files = lab::write(&orders::orders(Version::V852, 1, 1 << 20), folder.path())?.files;
        let options = BackupOptions { checksum: true, container, ..BackupOptions::default() };
        let written = backup(&[Set { files: &files, step: 1, options }], folder.path(), "full")?.files;
        let mut bytes = std::fs::read(&written[0])?;
        change(&mut bytes);
        std::fs::write(&written[0], bytes)?;
        let report = check(&written)?;
        let found: Vec<&str> = report.findings.iter().map(|finding| finding.check.id).collect();
        if found == expected { Ok(()) } else { Err(Failed::from(format!("found {found:?}, expected {expected:?}"))) }
    })
}

fn flip(bytes: &mut [u8], place: impl Fn(&[u8]) -> usize) {
    let at = place(bytes);
    bytes[at] ^= 1;
}

/// The offset of the first block with this tag.
fn block(bytes: &[u8], tag: &[u8; 4]) -> usize {
    blocks(bytes).iter().find(|block| block.tag == *tag).expect("a block").at
}

/// The offset of the stream `wanted` in the first block with this tag.
fn stream(bytes: &[u8], tag: &[u8; 4], wanted: &[u8; 4]) -> usize {
    let blocks = blocks(bytes);
    let block = blocks.iter().find(|block| block.tag == *tag).expect("a block");
    block.streams.iter().find(|stream| stream.tag == *wanted).expect("a stream").start
}
