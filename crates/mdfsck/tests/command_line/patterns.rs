//! Patterns of damaged pages: what many pages have in common is one line before the findings, with its probable cause.
//! The line must be the same whichever way the check takes, and sound pages must have none.

use std::ops::Range;

use format::protection::PROTECTION_WORD;
use serde_json::Value;

use super::spread::same;
use super::*;

pub(super) fn with_patterns() -> Vec<(&'static str, Test)> {
    vec![
        ("a pattern of zeros, of one byte, of text and of noise is one line with its cause", fills),
        ("the pattern of overwritten first pages is one line, which has all of them", first_pages),
        ("a pattern that repeats every n-th page or block is one line with its distance", repeated),
        ("a pattern of pages of another place has their distance, and 4 GB is recognized", other_places),
        ("a pattern of pages of another file and of another database names them", other_files),
        ("a pattern of moved pages has the number of bytes", moved),
        (
            "a pattern is in the text, the JSON, the summary, the rows' stderr and the page, before the findings",
            formats,
        ),
        ("a pattern is the same for each degree of parallelism, memory and division into tasks", ways),
        ("a pattern in a backup is that of the data file", backup),
        ("a pattern needs proofs in a database that needs its log", crashed),
        ("no pattern accuses sound pages, pages that are not in use, or one page with a wrong bit", none),
    ]
}

/// Pages in use: those of the table `documents`.
const SOME: Range<usize> = 832..896;

/// Writes a lab database, and returns the bytes of its only data file.
fn sample(folder: &Path) -> Result<Vec<u8>, Failed> {
    let made = mdfsck(folder, &["lab", "new", "sound", "--size", "9MB"]);
    ensure(made.status.success(), text(&made.stderr))?;
    fs::create_dir(folder.join("hurt"))?;
    Ok(fs::read(folder.join("sound/orders.mdf"))?)
}

fn page(bytes: &mut [u8], number: usize) -> &mut [u8] {
    &mut bytes[number * PAGE_BYTES..(number + 1) * PAGE_BYTES]
}

/// Bytes as encryption leaves them.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Gives a page the right checksum.
fn seal(page: &mut [u8]) {
    let sum = checksum(page.first_chunk().expect("a page"));
    page[PROTECTION_WORD..PROTECTION_WORD + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Writes the page ID of a page, and its checksum.
fn rename(page: &mut [u8], file: u16, number: u32) {
    page[32..36].copy_from_slice(&number.to_le_bytes());
    page[36..38].copy_from_slice(&file.to_le_bytes());
    seal(page);
}

/// The first of eight consecutive pages in use behind page `behind`, according to the first PFS page of the file.
fn in_use(bytes: &[u8], behind: usize) -> usize {
    const PFS_BYTES: usize = PAGE_BYTES + 100;
    let is_used = |number: usize| bytes[PFS_BYTES + number] & 0x40 != 0;
    (behind + 1..bytes.len() / PAGE_BYTES - 8).find(|first| (*first..first + 8).all(is_used)).expect("pages in use")
}

/// The JSON lines of a check of these bytes.
fn lines(folder: &Path, bytes: &[u8]) -> Result<Vec<Value>, Failed> {
    fs::write(folder.join("hurt/orders.mdf"), bytes)?;
    let output = mdfsck(folder, &["check", "hurt", "--format", "json"]);
    Ok(text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The patterns in these lines. Each has a number of pages that have findings, and offsets that are those of its pages.
fn patterns(lines: &[Value]) -> Result<Vec<Value>, Failed> {
    let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    for pattern in of("pattern") {
        let number = |key: &str| pattern[key].as_u64().ok_or_else(|| format!("{key}: {pattern}"));
        let (first, last) = (number("first_page")?, number("last_page")?);
        let is_in = |line: &&Value| {
            line["file"] == pattern["file"] && line["page"].as_u64().is_some_and(|page| (first..=last).contains(&page))
        };
        let damaged: std::collections::BTreeSet<u64> =
            of("finding").chain(of("demoted")).filter(is_in).filter_map(|line| line["page"].as_u64()).collect();
        ensure(number("pages")? <= damaged.len() as u64, format!("{pattern}: {}", damaged.len()))?;
        let bytes = [first * PAGE_BYTES as u64, (last + 1) * PAGE_BYTES as u64 - 1];
        ensure([number("first_byte")?, number("last_byte")?] == bytes, pattern.to_string())?;
    }
    let place = |kind: &str| lines.iter().position(|line| line["kind"] == kind).unwrap_or(lines.len());
    ensure(of("pattern").next().is_none() || place("pattern") < place("finding"), "patterns come before findings")?;
    Ok(of("pattern").cloned().collect())
}

/// Requires that a check of these bytes has exactly one pattern. Returns it.
fn one(folder: &Path, bytes: &[u8], id: &str, words: &[&str]) -> Result<Value, Failed> {
    let lines = lines(folder, bytes)?;
    let mut found = patterns(&lines)?;
    let all = format!("{found:#?}");
    let pattern = found.pop().ok_or("no pattern")?;
    ensure(found.is_empty() && pattern["id"] == id, &all)?;
    let said = pattern["text"].as_str().unwrap_or_default();
    ensure(words.iter().all(|word| said.contains(word)), format!("{words:?}: {said}"))?;
    let cause = pattern["cause"].as_str().ok_or("no cause")?;
    ensure(said.ends_with(&format!(" Probable cause: {cause}.")), said)?;
    Ok(pattern)
}

fn fills(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let length = SOME.len() * PAGE_BYTES;
    let log: Vec<u8> =
        b"2026-11-30 12:00:00.17 spid7s Recovery is complete.\r\n".iter().copied().cycle().take(length).collect();
    let fills: [(Vec<u8>, &str, &[&str]); 5] = [
        (vec![0; length], "pattern.zeros", &[": zeros. ", "a thin disk that lost an allocation", "TRIM"]),
        (vec![0xFF; length], "pattern.same-byte", &["each byte is 0xFF", "flash"]),
        (vec![0xA5; length], "pattern.same-byte", &["each byte is 0xA5", "wipes disks"]),
        (log, "pattern.text", &[": text. ", "content of another file"]),
        (noise(length, 1), "pattern.noise", &["without structure", "ransomware"]),
    ];
    for (fill, id, words) in fills {
        let mut bytes = sound.clone();
        bytes[SOME.start * PAGE_BYTES..SOME.end * PAGE_BYTES].copy_from_slice(&fill);
        let pattern = one(folder, &bytes, id, words)?;
        let is_of_all = pattern["first_page"] == SOME.start && pattern["last_page"] == SOME.end - 1;
        ensure(is_of_all && pattern["runs"] == 1, pattern.to_string())?;
        let said = pattern["text"].as_str().unwrap_or_default();
        ensure(said.contains("(1:832) to (1:895)") && said.contains("bytes 6,815,744 to 7,340,031 of the file"), said)?;
    }
    // One page of zeros is enough.
    let mut bytes = sound;
    page(&mut bytes, SOME.start).fill(0);
    let pattern =
        one(folder, &bytes, "pattern.zeros", &["page (1:832), bytes 6,815,744 to 6,823,935 of the file: zeros"])?;
    ensure(pattern["pages"] == 1, pattern.to_string())
}

fn first_pages(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    for (fill, id) in [(noise(8 * PAGE_BYTES, 2), "pattern.noise"), (vec![0; 8 * PAGE_BYTES], "pattern.zeros")] {
        let bytes = [&fill, &sound[8 * PAGE_BYTES..]].concat();
        let pattern = one(folder, &bytes, id, &["pages (1:0) to (1:7)", "bytes 0 to 65,535 of the file"])?;
        ensure(pattern["pages"].as_u64() >= Some(5), pattern.to_string())?;
    }
    Ok(())
}

fn repeated(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let pages = sound.len() / PAGE_BYTES;
    // 128 bytes of each 128 KB, as ransomware has done.
    let mut bytes = sound.clone();
    for number in (0..pages).step_by(16) {
        page(&mut bytes, number)[..128].copy_from_slice(&noise(128, number as u64));
    }
    let pattern = one(folder, &bytes, "pattern.headers", &["every 16th page from (1:", "ransomware"])?;
    ensure(pattern["every_pages"] == 16 && pattern["block_pages"] == 1, pattern.to_string())?;
    ensure(pattern["first_page"].as_u64().is_some_and(|page| page % 16 == 0), pattern.to_string())?;
    // 64 KB of each 256 KB.
    let mut bytes = sound.clone();
    for first in (SOME.start..1100).step_by(32) {
        bytes[first * PAGE_BYTES..(first + 8) * PAGE_BYTES].copy_from_slice(&noise(8 * PAGE_BYTES, first as u64));
    }
    let pattern = one(folder, &bytes, "pattern.noise", &["8 pages of each 32", "ransomware"])?;
    ensure(pattern["every_pages"] == 32 && pattern["block_pages"] == 8, pattern.to_string())?;
    // Some bytes in the middle of every tenth page.
    let mut bytes = sound;
    for number in (303..pages).step_by(10) {
        page(&mut bytes, number)[3000..3016].copy_from_slice(&noise(16, number as u64));
    }
    let pattern = one(folder, &bytes, "pattern.changed", &["every 10th page", "fixed distances"])?;
    ensure(pattern["every_pages"] == 10, pattern.to_string())
}

fn other_places(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let mut bytes = sound.clone();
    let from = SOME.start + 200;
    let copied = sound[from * PAGE_BYTES..(from + SOME.len()) * PAGE_BYTES].to_vec();
    bytes[SOME.start * PAGE_BYTES..SOME.end * PAGE_BYTES].copy_from_slice(&copied);
    let words = ["each page ID is 200 pages (1,638,400 bytes) higher", "misdirected writes"];
    let pattern = one(folder, &bytes, "pattern.other-place", &words)?;
    ensure(pattern["distance_pages"] == 200 && pattern["other_file"] == 1, pattern.to_string())?;
    // The pages of the place that is 4 GB further on.
    let mut bytes = sound.clone();
    for number in SOME {
        rename(page(&mut bytes, number), 1, number as u32 + (1 << 19));
    }
    let words = ["524,288 pages (4,294,967,296 bytes) higher", "32 bits of a byte offset", "the distance is 4 GB"];
    let pattern = one(folder, &bytes, "pattern.other-place", &words)?;
    ensure(pattern["distance_pages"] == 1 << 19, pattern.to_string())?;
    // Two pages that changed places are two patterns.
    let mut bytes = sound;
    let two = [SOME.start, SOME.start + 9].map(|number| page(&mut bytes, number).to_vec());
    page(&mut bytes, SOME.start).copy_from_slice(&two[1]);
    page(&mut bytes, SOME.start + 9).copy_from_slice(&two[0]);
    let found = patterns(&lines(folder, &bytes)?)?;
    let distances: Vec<Option<i64>> = found.iter().map(|pattern| pattern["distance_pages"].as_i64()).collect();
    ensure(distances == [Some(9), Some(-9)], format!("{found:#?}"))?;
    ensure(
        found.iter().all(|pattern| pattern["text"].as_str().is_some_and(|said| said.contains("a misdirected write:"))),
        format!("{found:#?}"),
    )
}

fn other_files(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let mut bytes = sound.clone();
    for number in SOME {
        rename(page(&mut bytes, number), 7, number as u32 - 100);
    }
    one(
        folder,
        &bytes,
        "pattern.other-place",
        &["of a file 7, which this database does not have", "another database"],
    )?;
    let mut bytes = sound.clone();
    for number in SOME {
        // The allocation unit in the header is one that the catalog does not have.
        page(&mut bytes, number)[24..28].copy_from_slice(&0x7777_7777u32.to_le_bytes());
        rename(page(&mut bytes, number), 1, number as u32 + 1000);
    }
    one(folder, &bytes, "pattern.other-place", &["of objects that the catalog does not have", "another database"])?;
    let mut bytes = sound;
    for number in SOME {
        page(&mut bytes, number)[24..28].copy_from_slice(&0x7777_7777u32.to_le_bytes());
        rename(page(&mut bytes, number), 1, number as u32);
    }
    one(folder, &bytes, "pattern.other-database", &["the right page IDs", "an older state of this file"])?;
    // A page of another file of the same database.
    let made = mdfsck(folder, &["lab", "new", "two", "--size", "9MB", "--files", "2"]);
    ensure(made.status.success(), text(&made.stderr))?;
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.join("two"))?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending != "ldf"));
    files.sort();
    let [main, second] = &files[..] else { return Err(format!("{files:?}").into()) };
    let (from, mut to) = (fs::read(second)?, fs::read(main)?);
    let places = [in_use(&from, 8), in_use(&to, 200)].map(|first| first * PAGE_BYTES..(first + 8) * PAGE_BYTES);
    to[places[1].clone()].copy_from_slice(&from[places[0].clone()]);
    fs::write(main, &to)?;
    let output = mdfsck(folder, &["check", "two", "--format", "json"]);
    let lines: Vec<Value> = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let found = patterns(&lines)?;
    let said = found.first().and_then(|pattern| pattern["text"].as_str()).unwrap_or_default();
    ensure(said.contains("of this database") && said.contains("write to the wrong file"), format!("{found:#?}"))
}

fn moved(folder: &Path) -> Result<(), Failed> {
    let sound = sample(folder)?;
    let (start, end) = (SOME.start * PAGE_BYTES, SOME.end * PAGE_BYTES);
    for (shift, words) in [
        (100, ["each page begins 100 bytes after its place", "a copy that inserted 100 bytes before these pages"]),
        (-512, ["each page begins 512 bytes before its place", "a copy that left out 512 bytes before these pages"]),
    ] {
        let mut bytes = sound.clone();
        let from = (start as i64 - shift) as usize;
        let copied = sound[from..from + end - start].to_vec();
        bytes[start..end].copy_from_slice(&copied);
        let pattern = one(folder, &bytes, "pattern.shifted", &words)?;
        ensure(pattern["shift_bytes"] == shift, pattern.to_string())?;
    }
    Ok(())
}

/// Damage of several kinds at once.
fn several(sound: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    bytes[632 * PAGE_BYTES..648 * PAGE_BYTES].fill(0);
    bytes[720 * PAGE_BYTES..736 * PAGE_BYTES].copy_from_slice(&noise(16 * PAGE_BYTES, 5));
    let copied = sound[1000 * PAGE_BYTES..1008 * PAGE_BYTES].to_vec();
    bytes[820 * PAGE_BYTES..828 * PAGE_BYTES].copy_from_slice(&copied);
    for number in (840..1150).step_by(10) {
        page(&mut bytes, number)[..64].copy_from_slice(&noise(64, number as u64));
    }
    bytes
}

fn formats(folder: &Path) -> Result<(), Failed> {
    let bytes = several(&sample(folder)?);
    let found = patterns(&lines(folder, &bytes)?)?;
    let ids: Vec<&str> = found.iter().filter_map(|pattern| pattern["id"].as_str()).collect();
    ensure(ids == ["pattern.zeros", "pattern.noise", "pattern.other-place", "pattern.headers"], format!("{found:#?}"))?;
    let said: Vec<&str> = found.iter().filter_map(|pattern| pattern["text"].as_str()).collect();
    let output = mdfsck(folder, &["check", "hurt", "--html", "p.html"]);
    let printed = text(&output.stdout);
    let expected: Vec<String> = said.iter().map(|text| format!("Pattern: {text}")).collect();
    ensure(printed.lines().take(4).eq(expected.iter().map(String::as_str)), &printed)?;
    let data = super::html::data(&fs::read_to_string(folder.join("p.html"))?)?;
    ensure(data["patterns"] == serde_json::json!(said), data["patterns"].to_string())?;
    let summary = text(&mdfsck(folder, &["check", "hurt", "--format", "summary"]).stdout);
    let place = |words: &str| summary.find(words).unwrap_or(usize::MAX);
    ensure(place("NOT SOUND") < place("Pattern   ") && place("Pattern   ") < place("8928"), &summary)?;
    ensure(summary.matches("\nPattern   ").count() == 4, &summary)?;
    let rows = mdfsck(folder, &["check", "hurt", "--tableresults"]);
    let (stdout, stderr) = (text(&rows.stdout), text(&rows.stderr));
    ensure(!stdout.contains("Pattern") && expected.iter().all(|line| stderr.contains(line)), stderr)?;
    // A pattern is no error: the numbers of errors and the exit status are those of the findings.
    ensure(
        rows.status.code() == output.status.code() && output.status.code().is_some_and(|code| code & 1 == 1),
        printed,
    )
}

fn ways(folder: &Path) -> Result<(), Failed> {
    let bytes = several(&sample(folder)?);
    fs::write(folder.join("hurt/orders.mdf"), &bytes)?;
    for format in ["text", "json"] {
        let run = |options: &[&str]| {
            let output = mdfsck(folder, &[&["check", "hurt", "--format", format], options].concat());
            let is_cost = |line: &&str| !line.starts_with(r#"{"kind":"s"#);
            text(&output.stdout).lines().filter(is_cost).map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = run(&["--maxdop", "1"]);
        ensure(expected.iter().filter(|line| line.contains("Probable cause: ")).count() == 4, expected.join("\n"))?;
        for options in [&["--maxdop", "4"][..], &["--maxdop", "2", "--memory", "40MB"]] {
            ensure(run(options) == expected, format!("{options:?}"))?;
        }
    }
    for size in ["1MB", "3MB"] {
        same(folder, &["hurt"], &[], size)?;
    }
    Ok(())
}

fn backup(folder: &Path) -> Result<(), Failed> {
    let bytes = several(&sample(folder)?);
    let of_files = patterns(&lines(folder, &bytes)?)?;
    let made = mdfsck(folder, &["lab", "backup", "hurt", "-o", "b"]);
    ensure(made.status.success(), text(&made.stderr))?;
    let output = mdfsck(folder, &["check", "b", "--format", "json"]);
    let lines: Vec<Value> = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let of_backup = patterns(&lines)?;
    ensure(of_backup == of_files && of_files.len() == 4, format!("{of_backup:#?}\n{of_files:#?}"))
}

/// In a database that was not shut down cleanly, pages that were allocated but not yet written may contain anything. So
/// zeros are no pattern; noise is one, because most of its pages have a flag for a checksum, which is wrong.
fn crashed(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "crash", "c", "--seed", "3", "--open"]).status.success(), "lab crash")?;
    let path = folder.join("c/workload.mdf");
    let sound = fs::read(&path)?;
    let pages = sound.len() / PAGE_BYTES / 2..sound.len() / PAGE_BYTES / 4 * 3;
    let filled = |fill: &[u8]| -> Result<Vec<Value>, Failed> {
        let mut bytes = sound.clone();
        bytes[pages.start * PAGE_BYTES..pages.end * PAGE_BYTES].copy_from_slice(fill);
        fs::write(&path, bytes)?;
        let output = mdfsck(folder, &["check", "--no-log", "c", "--format", "json"]);
        let lines: Vec<Value> = text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        patterns(&lines)
    };
    let zeros = filled(&vec![0; pages.len() * PAGE_BYTES])?;
    ensure(zeros.is_empty(), format!("{zeros:#?}"))?;
    let found = filled(&noise(pages.len() * PAGE_BYTES, 9))?;
    ensure(!found.is_empty() && found.iter().all(|pattern| pattern["id"] == "pattern.noise"), format!("{found:#?}"))
}

fn none(folder: &Path) -> Result<(), Failed> {
    let mut bytes = sample(folder)?;
    ensure(patterns(&lines(folder, &bytes)?)?.is_empty(), "a sound database")?;
    // The end of the file is not in use.
    let pages = bytes.len() / PAGE_BYTES;
    for (number, fill) in (pages - 4..pages).zip([
        vec![0; PAGE_BYTES],
        vec![0xFF; PAGE_BYTES],
        noise(PAGE_BYTES, 4),
        vec![b'x'; PAGE_BYTES],
    ]) {
        page(&mut bytes, number).copy_from_slice(&fill);
    }
    let found = lines(folder, &bytes)?;
    ensure(
        patterns(&found)?.is_empty() && found.iter().all(|line| line["kind"] != "finding"),
        "pages that are not in use",
    )?;
    page(&mut bytes, SOME.start)[5000] ^= 1;
    page(&mut bytes, SOME.start + 1)[5000] ^= 1;
    let found = lines(folder, &bytes)?;
    ensure(found.iter().any(|line| line["kind"] == "finding"), "a wrong bit")?;
    ensure(patterns(&found)?.is_empty(), format!("{:#?}", patterns(&found)?))?;
    // Damage of the lab that is no pattern.
    for kind in ["bit-rot", "torn-write", "key-order", "lost-extent", "broken-link"] {
        let damage = ["lab", "damage", "sound", "-o", kind, "--kind", kind];
        ensure(mdfsck(folder, &damage).status.success(), format!("lab damage {kind}"))?;
        let output = text(&mdfsck(folder, &["check", kind]).stdout);
        ensure(!output.contains("Pattern") && output.contains("Msg "), output)?;
    }
    for (kind, words) in [("zeroed-extent", ": zeros."), ("swapped-pages", "a misdirected write:")] {
        let damage = ["lab", "damage", "sound", "-o", kind, "--kind", kind];
        ensure(mdfsck(folder, &damage).status.success(), format!("lab damage {kind}"))?;
        let output = text(&mdfsck(folder, &["check", kind]).stdout);
        ensure(output.starts_with("Pattern: ") && output.contains(words), output)?;
    }
    Ok(())
}
