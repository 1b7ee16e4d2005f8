//! Tests with changed, truncated or mixed-up backups. Damage to bytes with a checksum must be found, missing parts must
//! be reported, and the program must never panic.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use check::Silent;
use findings::{Options, Report};
use lab::backup::{BackedUp, BackupOptions, Base, Container, Set, backup};
use lab::{Version, orders};
use source::{BackupPages, OpenError};
use tempfile::TempDir;

/// The number of rounds for each form of backup. Each round changes one byte.
const ROUNDS: u64 = 200;

/// A very small database.
fn database(seed: u64) -> (TempDir, Vec<PathBuf>) {
    let mut description = orders::orders(Version::V904, seed, 0);
    description.tables.truncate(1);
    let folder = tempfile::tempdir().unwrap();
    let files = lab::write(&description, folder.path()).unwrap().files;
    (folder, files)
}

fn write(files: &[PathBuf], step: u8, options: BackupOptions<'_>, folder: &Path, name: &str) -> BackedUp {
    backup(&[Set { files, step, options }], folder, name).unwrap()
}

/// The forms of a backup: uncompressed, compressed in each of two container formats, and striped. All of them have
/// checksums.
fn backup_options() -> [(&'static str, BackupOptions<'static>); 4] {
    let plain = BackupOptions { checksum: true, ..BackupOptions::default() };
    [
        ("plain", plain),
        ("compressed", BackupOptions { container: Some(Container::Version2), ..plain }),
        ("compressed in the old container", BackupOptions { container: Some(Container::Version1), ..plain }),
        ("striped", BackupOptions { stripes: 3, ..plain }),
    ]
}

fn check(files: &[PathBuf]) -> Result<Report, OpenError> {
    let pages = BackupPages::open(files, &[])?;
    Ok(check::run(&pages, &catalog::load(&pages), &Options { max_threads: 1, ..Options::default() }, &Silent))
}

/// Whether a check reports a finding or refuses the files.
fn finds(files: &[PathBuf]) -> bool {
    !check(files).is_ok_and(|report| report.findings.is_empty())
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_changed_byte_that_a_checksum_covers_is_found() {
    let (folder, database) = database(1);
    for (name, options) in backup_options() {
        let done = write(&database, 1, options, folder.path(), name);
        assert!(!finds(&done.files), "{name}: sound");
        let mut dice = lab_dice(name);
        let mut covered = 0;
        for round in 0..ROUNDS {
            let number = round as usize % done.files.len();
            let sound = std::fs::read(&done.files[number]).unwrap();
            let at = dice() % sound.len() as u64;
            let mut bytes = sound.clone();
            bytes[at as usize] ^= 1 << (dice() % 8);
            std::fs::write(&done.files[number], &bytes).unwrap();
            let is_covered = done.covered[number].iter().any(|place| place.contains(&at));
            // The only bytes without a checksum are padding, and some texts and numbers.
            assert!(finds(&done.files) || !is_covered, "{name}: byte {at} of file {number} changed, nothing found");
            covered += u64::from(is_covered);
            // A program that reads from a pipe cannot seek past damage. It must still come to an end.
            let _ = source::backup::media_from(Path::new("-"), Box::new(std::io::Cursor::new(bytes)));
            std::fs::write(&done.files[number], &sound).unwrap();
        }
        assert!(covered > ROUNDS * 3 / 4, "{name}: only {covered} covered: the test does not test");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn blocks_and_streams_that_were_wiped_with_zeros_are_found() {
    // A block of zeros has a valid checksum. Nevertheless, the program must not treat the zeros, or the blocks after
    // them, as padding.
    let (folder, database) = database(7);
    let options = BackupOptions { checksum: true, in_flight: 4, ..BackupOptions::default() };
    let done = write(&database, 1, options, folder.path(), "wiped");
    let sound = std::fs::read(&done.files[0]).unwrap();
    assert!(!finds(&done.files), "sound");
    let mut tried = 0;
    for place in &done.covered[0] {
        for length in [512, 2560, 8192] {
            let start = place.start as usize;
            let end = (start + length).min(sound.len());
            let mut bytes = sound.clone();
            bytes[start..end].fill(0);
            if bytes != sound {
                std::fs::write(&done.files[0], &bytes).unwrap();
                assert!(finds(&done.files), "{length} bytes from {start} on are zero, nothing found");
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "only {tried} places were wiped: the test does not test");
}

fn lab_dice(name: &str) -> impl FnMut() -> u64 {
    let mut state = name.bytes().fold(0x1234_5678_9ABC_DEF1u64, |state, byte| state.rotate_left(5) ^ u64::from(byte));
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 8
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_backup_that_is_cut_is_found() {
    let (folder, database) = database(2);
    for (name, options) in backup_options() {
        let done = write(&database, 1, options, folder.path(), name);
        let last = done.files.len() - 1;
        let sound = std::fs::read(&done.files[last]).unwrap();
        let starts: Vec<u64> = done.covered[last].iter().map(|place| place.start).filter(|&start| start > 0).collect();
        assert!(starts.len() > 10, "{name}");
        for start in starts {
            std::fs::write(&done.files[last], &sound[..start as usize]).unwrap();
            assert!(finds(&done.files), "{name}: cut at byte {start} of {}", sound.len());
            let piped = std::io::Cursor::new(sound[..start as usize].to_vec());
            let piped = source::backup::media_from(Path::new("-"), Box::new(piped));
            // If a backup is truncated immediately after its label, the remaining part is complete, but it contains no
            // backup set.
            let is_whole = piped.is_ok_and(|media| media.damage.is_empty() && !media.sets.is_empty());
            assert!(!is_whole, "{name}: cut at byte {start} in a pipe");
        }
    }
}

#[test]
fn stripes_that_do_not_belong_together_are_refused() {
    let (folder, database) = database(3);
    let options = BackupOptions { stripes: 3, ..BackupOptions::default() };
    let ours = write(&database, 1, options, folder.path(), "ours").files;
    let later = write(&database, 2, options, folder.path(), "later").files;
    for missing in 0..3 {
        let mut some = ours.clone();
        some.remove(missing);
        // If a stripe is missing, the first extents and therefore the catalog cannot be read. The remaining pages must
        // not be reported as damaged.
        let report = check(&some).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert!(report.not_verified.iter().any(|entry| entry.what == "stripes" && entry.count == 1));
    }
    let mixed = [ours[0].clone(), ours[1].clone(), later[2].clone()];
    assert!(matches!(check(&mixed), Err(OpenError::OtherBackup { .. })), "a stripe of another backup");
    let twice = [ours[0].clone(), ours[0].clone(), ours[2].clone()];
    assert!(matches!(check(&twice), Err(OpenError::SameStripe { .. })), "a stripe twice");
    let swapped = [ours[2].clone(), ours[0].clone(), ours[1].clone()];
    assert!(check(&swapped).unwrap().findings.is_empty(), "in another order");
}

#[test]
fn a_stripe_whose_media_header_is_damaged_is_named_as_the_cause() {
    let (folder, database) = database(8);
    let full = write(&database, 1, BackupOptions::default(), folder.path(), "full").files;
    let mut refused = 0;
    for container in [None, Some(Container::Version1), Some(Container::Version2)] {
        let options = BackupOptions { stripes: 3, container, ..BackupOptions::default() };
        let files = write(&database, 1, options, folder.path(), &format!("striped {container:?}"));
        let base = Some(Base { files: &database, step: 1 });
        let options = BackupOptions { base, ..options };
        let differential = write(&database, 2, options, folder.path(), &format!("differential {container:?}"));
        for (set, of) in [(&files, &[][..]), (&differential, &full[..])] {
            for (damaged, covered) in set.files.iter().zip(&set.covered) {
                let sound = std::fs::read(damaged).unwrap();
                let mut bytes = sound.clone();
                // Damages the first block of the file. In a compressed backup, damages the header of the compressed
                // record that contains this block.
                bytes[covered[0].start as usize + 2] ^= 0x5A;
                std::fs::write(damaged, bytes).unwrap();
                let name = damaged.display();
                match check(&[of, &set.files].concat()) {
                    // If the IDs of the media set are still readable in the damaged header, the check is not refused.
                    // The check must then report a finding.
                    Ok(report) => assert!(!report.findings.is_empty(), "{name}: nothing found"),
                    Err(OpenError::UnknownMedia { path }) if path == *damaged => refused += 1,
                    Err(error) => panic!("{name}: {error}"),
                }
                std::fs::write(damaged, sound).unwrap();
            }
        }
    }
    assert!(refused >= 12, "only {refused} were refused: the test does not test");
}

#[test]
fn a_differential_of_another_full_backup_is_refused() {
    let (folder, database) = database(4);
    let full = write(&database, 1, BackupOptions::default(), folder.path(), "full").files;
    let other = write(&database, 2, BackupOptions::default(), folder.path(), "other").files;
    let options = BackupOptions { base: Some(Base { files: &database, step: 2 }), ..BackupOptions::default() };
    let differential = write(&database, 3, options, folder.path(), "differential").files;
    assert!(matches!(check(&[full, differential.clone()].concat()), Err(OpenError::OtherBase { .. })));
    assert!(check(&[other, differential.clone()].concat()).unwrap().findings.is_empty());
    assert!(matches!(check(&differential), Err(OpenError::DifferentialAlone { .. })));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn lengths_and_numbers_that_lie_do_no_harm() {
    let (folder, database) = database(5);
    let full = write(&database, 1, BackupOptions::default(), folder.path(), "full").files.remove(0);
    let options = BackupOptions { base: Some(Base { files: &database, step: 1 }), ..BackupOptions::default() };
    let differential = write(&database, 2, options, folder.path(), "differential").files.remove(0);
    let (sound, both) = (std::fs::read(&full).unwrap(), [full.clone(), differential.clone()]);
    assert!(!finds(&both));
    // The labels of both files claim a number of stripes that is larger than any stripe number can be.
    for file in &both {
        let mut bytes = std::fs::read(file).unwrap();
        let raid = bytes.windows(4).position(|tag| tag == b"RAID").unwrap() + 22;
        bytes[raid + 0x14..raid + 0x16].fill(0xFF);
        std::fs::write(file, bytes).unwrap();
    }
    let told = check(&both).unwrap().not_verified.into_iter().find(|entry| entry.what == "stripes").unwrap();
    assert_eq!(told.count, u64::from(u16::MAX));
    // Changes the length of one stream after another. Corrects the checksum of the stream header each time.
    let streams: Vec<usize> = (0..sound.len() - 22)
        .step_by(4)
        .filter(|&at| {
            [&b"RAID"[..], b"SPAD", b"MQCI", b"MQDA", b"MQTL", b"APAD", b"TSMP"].contains(&&sound[at..at + 4])
        })
        .collect();
    assert!(streams.len() > 20);
    for at in streams {
        for length in [0u64, 3, 1 << 20, 1 << 40, 1 << 62, u64::MAX] {
            let mut bytes = sound.clone();
            bytes[at + 8..at + 16].copy_from_slice(&length.to_le_bytes());
            let sum = bytes[at..at + 20].chunks(2).fold(0, |sum, pair| sum ^ u16::from_le_bytes([pair[0], pair[1]]));
            bytes[at + 20..at + 22].copy_from_slice(&sum.to_le_bytes());
            let changed = folder.path().join("changed.bak");
            std::fs::write(&changed, &bytes).unwrap();
            let _ = check(&[changed]);
            // Reads the same bytes from a pipe. The length of a pipe is not known in advance.
            let piped = source::backup::media_from(Path::new("-"), Box::new(std::io::Cursor::new(bytes)));
            assert!(piped.is_ok());
        }
    }
}
