use super::*;
use change::{Ledger as _, PartKey, Piece};
use findings::FileRange;

fn key(first: u32) -> PartKey {
    let range = FileRange { file_id: 1, first, pages: 32 };
    PartKey { range, above: [1; 16], maps: [2; 16], meaning: [first as u8; 16] }
}

fn part(first: u32, sums: usize) -> Part {
    Part { key: key(first), sums: vec![7; sums], bounds: vec![8; 3], extents: vec![9; 8] }
}

/// Everything in the ledger, as text.
fn content(ledger: &Ledger<String>) -> Vec<String> {
    let mut content = Vec::new();
    let read = ledger.each(&mut |entry| {
        content.push(match entry {
            Entry::Run(names) => String::from_utf8_lossy(names).into_owned(),
            Entry::Group(group) => {
                let keys = group.keys().to_vec();
                let all = group.read(Piece::All)?.len();
                let part = |(at, key): (usize, &PartKey)| {
                    let (sums, bounds) = (group.read(Piece::Sums(at))?, group.read(Piece::Bounds(at))?);
                    assert_eq!((&sums, bounds), (&vec![7; sums.len()], vec![8; 3]));
                    Ok(format!("{} {}", key.range.first, sums.len()))
                };
                let parts = keys.iter().enumerate().map(part).collect::<io::Result<Vec<_>>>()?;
                format!("{all}: {}", parts.join(", "))
            }
        });
        Ok(())
    });
    read.unwrap();
    content
}

fn with_two_runs(path: &Path) {
    let ledger = Ledger::create(path, "build", 32, "base".to_owned(), u64::MAX).unwrap();
    ledger.begin(b"names");
    ledger.keep(&[part(0, 100), part(32, 200_000)], &[1; 50]);
    ledger.keep(&[part(64, 3)], &[]);
    ledger.stand(b"first");
    assert!(ledger.commit("full".to_owned(), "monday".to_owned(), Some(b"seen")).unwrap());
    let ledger: Ledger<String> = Ledger::open(path, "build").unwrap();
    ledger.begin(b"other names");
    ledger.keep(&[part(32, 5)], &[]);
    assert!(ledger.commit("diff".to_owned(), "tuesday".to_owned(), None).unwrap());
}

#[test]
fn the_latest_run_comes_first_and_an_abandoned_one_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parts").join("x.ledger");
    with_two_runs(&path);
    let expected = ["other names", "0: 32 5", "names", "50: 0 100, 32 200000", "0: 64 3"];
    for _ in 0..3 {
        let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
        assert_eq!(content(&ledger), expected);
        assert_eq!((ledger.base().as_str(), ledger.seen().unwrap().as_slice()), ("base", &b"seen"[..]));
        assert_eq!(ledger.runs().map(|run| run.read_at.as_str()).collect::<Vec<_>>(), ["tuesday", "monday"]);
        let other = Ledger::<String>::open(&path, "build");
        assert!(matches!(other, Err(PartsError::InUse { .. })), "two processes at a time");
        // Not committed.
        ledger.begin(b"lost");
        ledger.stand(b"lost");
        (0..3000).for_each(|first| ledger.keep(&[part(first * 32, 1000)], &[]));
    }
    assert!(matches!(Ledger::<String>::open(&path, "other"), Err(PartsError::OtherBuild { .. })));
}

#[test]
fn what_was_added_stays_when_the_process_is_killed_and_the_rest_of_the_run_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ledger");
    let mut ledger = Ledger::create(&path, "build", 32, "base".to_owned(), u64::MAX).unwrap();
    ledger.keep_opened(Some(b"opened".to_vec()));
    ledger.begin(b"names");
    ledger.keep(&[part(0, 5000), part(32, 100)], &[1; 50]);
    ledger.checkpoint("tonight", "monday").unwrap();
    assert!(matches!(Ledger::<String>::open(&path, "build"), Err(PartsError::InUse { .. })));
    ledger.keep(&[part(64, 0)], &[]);
    ledger.checkpoint("tonight", "monday").unwrap();
    ledger.keep(&[part(96, 9)], &[]);
    drop(ledger);
    let killed: Ledger<String> = Ledger::open(&path, "build").unwrap();
    assert_eq!(content(&killed), ["names", "0: 64 0", "names", "50: 0 5000, 32 100"]);
    drop(killed);
    let mut ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
    ledger.begin(b"later");
    ledger.keep(&[part(96, 9)], &[]);
    ledger.checkpoint("tonight", "tuesday").unwrap();
    ledger.keep(&[part(0, 8)], &[]);
    ledger.set_note("remember".to_owned());
    assert!(ledger.commit("tonight".to_owned(), "tuesday".to_owned(), Some(b"seen")).unwrap());
    let said = |ledger: &Ledger<String>| {
        let opened = Ledger::<String>::opened(&path, "build", 100, |base| base == "base");
        (ledger.note().to_owned(), ledger.seen().unwrap(), opened, ledger.key().bytes().to_vec())
    };
    let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
    let latest = ["later", "0: 0 8", "later", "0: 96 9", "names", "0: 64 0", "names"];
    assert_eq!(content(&ledger), [&latest[..], &["50: 0 5000, 32 100"]].concat());
    let (before, bytes) = (said(&ledger), fs::metadata(&path).unwrap().len());
    assert_eq!((before.0.as_str(), &*before.1, before.2.as_deref()), ("remember", &b"seen"[..], Some(&b"opened"[..])));
    drop(ledger);
    // Without what was replaced, everything else is as it was.
    Ledger::<String>::compact(&path, "build").unwrap();
    let ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
    assert_eq!(content(&ledger), [&latest[..], &["0: 32 100"]].concat());
    assert_eq!(said(&ledger), before);
    let dates = ["tuesday", "tuesday", "monday", "monday"];
    assert_eq!(ledger.runs().map(|run| run.read_at.as_str()).collect::<Vec<_>>(), dates);
    assert!(fs::metadata(&path).unwrap().len() < bytes);
}

#[test]
fn a_ledger_that_is_full_keeps_what_found_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ledger");
    let ledger = Ledger::create(&path, "build", 8, String::new(), CONTENT + 600).unwrap();
    ledger.begin(b"names");
    (0..10).for_each(|first| ledger.keep(&[part(first * 8, 100)], &[]));
    // What was found always has room.
    let found = Part {
        key: PartKey { above: PartKey::FOUND, ..key(800) },
        sums: Vec::new(),
        bounds: vec![8; 3],
        extents: vec![9; 8],
    };
    ledger.keep(&[found], &[]);
    assert!(!ledger.commit(String::new(), String::new(), None).unwrap());
    let ledger = Ledger::open(&path, "build").unwrap();
    assert_eq!(content(&ledger), ["names", "0: 0 100", "0: 8 100", "0: 16 100", "0: 800 0"]);
}

#[test]
fn a_cut_or_changed_ledger_is_refused_or_says_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ledger");
    with_two_runs(&path);
    let whole = fs::read(&path).unwrap();
    let expected = content(&Ledger::open(&path, "build").unwrap());
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let ledger = Ledger::<String>::open(&path, "build").ok()?;
        let mut count = 0;
        let is_read = ledger.each(&mut |entry| {
            count += 1;
            if let Entry::Group(group) = entry {
                for at in 0..group.keys().len() {
                    group.read(Piece::Sums(at))?;
                }
            }
            Ok(())
        });
        Some((count, is_read.is_ok()))
    };
    for length in [0, 10, 16, 600, 1080, CONTENT as usize, whole.len() - 1] {
        assert_eq!(read(&whole[..length]), None, "{length}");
    }
    for at in (0..whole.len()).step_by(whole.len() / 200).chain(512..580).chain(1024..1100) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        // A change of the latest slot leaves the contents before the latest run; parts verify themselves.
        if let Some((count, is_read)) = read(&changed) {
            assert!(!is_read || count == expected.len() || count == 3, "{at}: {count}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn after_an_error_no_list_of_contents_names_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ledger");
    with_two_runs(&path);
    let mut ledger: Ledger<String> = Ledger::open(&path, "build").unwrap();
    let before = content(&ledger);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let file = std::mem::replace(&mut ledger.writer.get_mut().unwrap().file, full);
    ledger.begin(b"lost");
    ledger.keep(&[part(0, 2_000_000)], &[]);
    assert!(ledger.checkpoint("", "").is_err());
    // The disk has room again, but what was to be written before is lost.
    ledger.writer.get_mut().unwrap().file = file;
    ledger.keep(&[part(32, 100)], &[]);
    assert!(ledger.checkpoint("", "").is_err());
    assert!(ledger.commit(String::new(), String::new(), None).is_err());
    assert_eq!(content(&Ledger::open(&path, "build").unwrap()), before);
}
