//! `--carve`: the pages of a database are found in raw bytes, such as a disk image. A page that is not found is not
//! verified, and is never a finding.

use std::collections::BTreeMap;
use std::path::PathBuf;

use format::protection::{seal, verify};
use serde_json::Value;

use super::*;

pub(super) fn with_images() -> Vec<(&'static str, Test)> {
    vec![
        ("carve finds the pages of several files in an image, and exports their rows", rows_of_an_image),
        ("carve reads a file that was moved as the file", moved_file),
        ("carve lists what is not in the image as not verified, and never as a finding", holes),
        ("carve demotes the findings of pages that may be of different moments", moments),
        ("carve gives the same results for every number of threads and grant", same_results),
        ("carve is refused with options that make no sense for raw bytes", refusals),
    ]
}

/// Writes a lab database with two files, and returns the paths of its data files.
fn sample(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let made = mdfsck(folder, &["lab", "new", "s", "--size", "9MB", "--files", "2"]);
    ensure(made.status.success(), text(&made.stderr))?;
    let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "mdf" || extension == "ndf");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.join("s"))? {
        files.extend(Some(entry?.path()).filter(is_data));
    }
    files.sort();
    ensure(files.len() == 2, format!("{files:?}"))?;
    Ok(files)
}

/// Bytes without pages.
fn junk(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8 | 2).collect()
}

/// The offsets of the pages with rows of tables, without those of the catalog.
fn data_pages(bytes: &[u8]) -> Vec<usize> {
    let pages = (128..bytes.len() / PAGE_BYTES).map(|page| page * PAGE_BYTES);
    pages.filter(|at| bytes[*at..].starts_with(&[1, 1])).collect()
}

/// An older copy of a page: its LSN is lower, and a byte in its body differs.
fn older(page: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut page: format::PageBytes = page.try_into()?;
    let vlf = u32::from_le_bytes(page[40..44].try_into()?);
    page[40..44].copy_from_slice(&vlf.saturating_sub(1).to_le_bytes());
    page[200] ^= 1;
    seal(&mut page);
    ensure(verify(&page).is_ok(), "sealed")?;
    Ok(page.to_vec())
}

/// An image: older copies of some pages, junk, the first file, junk, the second file in pieces out of order.
fn image(folder: &Path) -> Result<Vec<u8>, Failed> {
    let files = sample(folder)?;
    let (first, second) = (fs::read(&files[0])?, fs::read(&files[1])?);
    let mut image = Vec::new();
    for at in data_pages(&first).iter().take(12) {
        image.extend(older(&first[*at..at + PAGE_BYTES])?);
    }
    image.extend(junk(512 * 77));
    image.extend(&first);
    image.extend(junk(512 * 3));
    for piece in second.chunks(32 * PAGE_BYTES).rev() {
        image.extend([piece, &junk(512 * 5)].concat());
    }
    Ok(image)
}

fn exported(folder: &Path, arguments: &[&str], to: &str) -> Result<(BTreeMap<String, String>, Output), Failed> {
    let output = mdfsck(folder, &[&["export", "-o", to], arguments].concat());
    let mut tables = BTreeMap::new();
    for entry in fs::read_dir(folder.join(to)).map_err(|cause| format!("{cause}: {output:?}"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tables.insert(name, fs::read_to_string(&path)?);
    }
    ensure(tables.len() > 2, format!("{output:?}"))?;
    Ok((tables, output))
}

fn lines(output: &Output) -> Result<Vec<Value>, Failed> {
    Ok(text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

fn rows_of_an_image(folder: &Path) -> Result<(), Failed> {
    fs::write(folder.join("disk.img"), image(folder)?)?;
    let (expected, _) = exported(folder, &["s"], "sound")?;
    let (found, output) = exported(folder, &["--carve", "disk.img"], "carved")?;
    let stderr = text(&output.stderr);
    ensure(output.status.success() && found == expected, format!("{:?}: {stderr}", output.status))?;
    ensure(stderr.contains("of file 1 and ") && stderr.contains("12 pages were found more than once"), stderr.clone())?;
    ensure(stderr.contains("; and 4 more") && stderr.contains(" of disk.img (LSN "), stderr)?;
    for command in
        [&["tables"][..], &["tables", "--json"], &["rows", "customers"], &["rows", "order_lines", "--format", "csv"]]
    {
        let carved = mdfsck(folder, &[command, &["--carve", "disk.img"]].concat());
        let plain = mdfsck(folder, &[command, &["s"]].concat());
        ensure(carved.status.success() && carved.stdout == plain.stdout, format!("{command:?}: {carved:?}"))?;
    }
    let info = mdfsck(folder, &["info", "--carve", "disk.img"]);
    let stdout = text(&info.stdout);
    ensure(info.status.success() && stdout.matches("disk.img").count() >= 2, format!("{info:?}"))?;
    let checked = mdfsck(folder, &["check", "--carve", "--json", "disk.img"]);
    let checked_lines = lines(&checked)?;
    ensure(checked.status.code() == Some(0) && of_kind(&checked_lines, "finding").is_empty(), format!("{checked:?}"))?;
    let warnings: Vec<&Value> = of_kind(&checked_lines, "warning").into_iter().map(|line| &line["id"]).collect();
    ensure(warnings == ["carve.found", "carve.doubles"], format!("{warnings:?}"))?;
    // The image in two pieces, in the wrong order, is as good.
    let bytes = fs::read(folder.join("disk.img"))?;
    let (one, other) = bytes.split_at(bytes.len() / 2 / 512 * 512);
    fs::write(folder.join("1.img"), [one, &other[..PAGE_BYTES]].concat())?;
    fs::write(folder.join("2.img"), other)?;
    let (found, output) = exported(folder, &["--carve", "2.img", "1.img"], "pieces")?;
    ensure(output.status.success() && found == expected, text(&output.stderr))
}

fn moved_file(folder: &Path) -> Result<(), Failed> {
    let files = sample(folder)?;
    let mut first = fs::read(&files[0])?;
    // Damage that only another page proves: an older copy of a page, as after a lost write.
    let pages = data_pages(&first);
    let at = pages[pages.len() / 2];
    let mut page: format::PageBytes = first[at..at + PAGE_BYTES].try_into()?;
    page[8..14].fill(0);
    seal(&mut page);
    first[at..at + PAGE_BYTES].copy_from_slice(&page);
    fs::write(&files[0], &first)?;
    let output = mdfsck(folder, &["check", "--json", "s"]);
    let (plain, status) = (lines(&output)?, output.status);
    ensure(!of_kind(&plain, "finding").is_empty(), format!("{plain:?}"))?;
    fs::copy(&files[1], folder.join("2.img"))?;
    for by in [512, 100_001] {
        fs::write(folder.join("1.img"), [&junk(by)[..], &first].concat())?;
        let output = mdfsck(folder, &["check", "--carve", "--json", "1.img", "2.img"]);
        let carved = lines(&output)?;
        ensure(output.status == status, format!("{by}: {output:?}"))?;
        for kind in ["finding", "demoted", "object", "not_verified", "note"] {
            ensure(of_kind(&carved, kind) == of_kind(&plain, kind), format!("{by}: {carved:?}"))?;
        }
    }
    // The file without its first bytes has no header page; the rest is there.
    fs::write(folder.join("1.img"), &first[836..])?;
    let output = mdfsck(folder, &["check", "--carve", "--json", "1.img", "2.img"]);
    let carved = lines(&output)?;
    ensure(output.status.code() == Some(16) && of_kind(&carved, "finding").is_empty(), format!("{output:?}"))?;
    let missing = of_kind(&carved, "not_verified").into_iter().find(|line| line["id"] == "pages.not-found").cloned();
    let missing = missing.ok_or_else(|| format!("{carved:?}"))?;
    ensure(
        missing["count"] == 1 && missing["reason"].as_str().is_some_and(|text| text.ends_with(": 0")),
        missing.to_string(),
    )
}

fn holes(folder: &Path) -> Result<(), Failed> {
    let files = sample(folder)?;
    let (first, second) = (fs::read(&files[0])?, fs::read(&files[1])?);
    let sound = [&junk(512)[..], &first, &second].concat();
    let pages = data_pages(&first);
    let (expected, _) = exported(folder, &["s"], "sound")?;
    // Five pages with rows.
    let mut image = sound.clone();
    let gone = &pages[20..25];
    gone.iter().for_each(|at| image[512 + at..][..PAGE_BYTES].copy_from_slice(&junk(PAGE_BYTES)));
    fs::write(folder.join("disk.img"), &image)?;
    let output = mdfsck(folder, &["check", "--carve", "--json", "disk.img"]);
    let found = lines(&output)?;
    ensure(output.status.code() == Some(16) && of_kind(&found, "finding").is_empty(), format!("{output:?}"))?;
    let missing = of_kind(&found, "not_verified").into_iter().find(|line| line["id"] == "pages.not-found").cloned();
    let missing = missing.ok_or_else(|| format!("{found:?}"))?;
    let ranges = missing["reason"].as_str().unwrap_or_default();
    let range = format!("{}", gone[0] / PAGE_BYTES);
    ensure(missing["count"] == 5 && missing["scope"] == "file 1" && ranges.contains(&range), missing.to_string())?;
    let (rows, output) = exported(folder, &["--carve", "disk.img"], "carved")?;
    let stderr = text(&output.stderr);
    ensure(output.status.code() == Some(16) && stderr.contains("5 pages of these tables were not found"), stderr)?;
    let count = |tables: &BTreeMap<String, String>| tables.values().map(|rows| rows.lines().count()).sum::<usize>();
    ensure(count(&rows) < count(&expected), "rows")?;
    ensure(text(&output.stdout).contains("was not found in the image"), text(&output.stdout))?;
    // Whatever is not there, there is no finding: catalog, maps, header pages, ends of files.
    let mut state = 5u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let all = sound.len() / PAGE_BYTES;
    let mut statuses = BTreeMap::new();
    for round in 0..10 {
        let mut image = sound.clone();
        let lost = match round {
            0..=5 => vec![([0, 1, 2, 6, 8, 9][round], 1)],
            6 => vec![(all / 2, all)],
            _ => (0..1 + random(20)).map(|_| (random(all), 1 + random(60))).collect(),
        };
        for (page, pages) in lost.clone() {
            let start = (512 + page * PAGE_BYTES).min(image.len());
            let end = (start + pages * PAGE_BYTES).min(image.len());
            image[start..end].fill(0xA7);
        }
        fs::write(folder.join("disk.img"), &image)?;
        let output = mdfsck(folder, &["check", "--carve", "--json", "disk.img"]);
        let findings = text(&output.stdout).lines().filter(|line| line.starts_with(r#"{"kind":"finding""#)).count();
        let status = output.status.code().unwrap_or(-1);
        *statuses.entry(status).or_insert(0) += 1;
        ensure(findings == 0 && [0, 16].contains(&status), format!("{lost:?}: {status}: {}", text(&output.stderr)))?;
    }
    ensure(statuses.get(&16).is_some_and(|count| *count > 6), format!("{statuses:?}"))
}

fn moments(folder: &Path) -> Result<(), Failed> {
    let files = sample(folder)?;
    let (mut first, second) = (fs::read(&files[0])?, fs::read(&files[1])?);
    let pages = data_pages(&first);
    let at = pages[pages.len() / 2];
    // The newest copy of a page is not in the image, only one that its neighbours contradict.
    let mut page: format::PageBytes = first[at..at + PAGE_BYTES].try_into()?;
    page[8..14].fill(0);
    seal(&mut page);
    first[at..at + PAGE_BYTES].fill(0xA7);
    fs::write(folder.join("disk.img"), [&page[..], &first, &second].concat())?;
    let output = mdfsck(folder, &["check", "--carve", "--json", "disk.img"]);
    let found = lines(&output)?;
    let demoted = of_kind(&found, "demoted");
    let by: Vec<&Value> = demoted.iter().map(|line| &line["limit"]).collect();
    ensure(output.status.code() == Some(16) && of_kind(&found, "finding").is_empty(), format!("{output:?}"))?;
    ensure(!by.is_empty() && text(&output.stdout).contains("demoted.carved"), format!("{found:?}"))
}

fn same_results(folder: &Path) -> Result<(), Failed> {
    let mut bytes = image(folder)?;
    for at in [3_000_000, 4_000_000, 5_000_000] {
        bytes[at..at + 50_000].fill(0);
    }
    fs::write(folder.join("disk.img"), &bytes)?;
    let result = |options: &[&str]| {
        let output = mdfsck(folder, &[&["check", "--carve", "--json", "disk.img"], options].concat());
        let lines = text(&output.stdout);
        let kept: Vec<String> = lines
            .lines()
            .filter(|line| !line.contains(r#""kind":"statistics""#) && !line.contains(r#""kind":"summary""#))
            .map(str::to_owned)
            .collect();
        (kept, text(&output.stderr), output.status.code())
    };
    let first = result(&["--maxdop", "1"]);
    ensure(first.2 == Some(16) && first.0.len() > 5, format!("{first:?}"))?;
    for options in [&["--maxdop", "8"][..], &["--memory", "64MB", "--maxdop", "2"], &["--readers", "2"]] {
        let other = result(options);
        ensure(other == first, format!("{options:?}: {:?} {:?}", other.1, first.1))?;
    }
    let output = mdfsck(folder, &["check", "--carve", "disk.img", "--progress", "lines"]);
    let stderr = text(&output.stderr);
    ensure(stderr.contains("looking-for-pages 100"), stderr)
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    fs::write(folder.join("disk.img"), image(folder)?)?;
    let check = |options: &[&str]| mdfsck(folder, &[&["check", "--carve", "disk.img"], options].concat());
    for (options, word) in [
        (&["--set", "1"][..], "--set"),
        (&["--stop-at", "2024-01-01"], "--stop-at"),
        (&["--window", "1h", "--history", "h"], "--window and --within, --history"),
        (&["--history", "h"], "--history"),
        (&["--snapshot-with", "program"], "--snapshot-with"),
        (&["--direct"], "--direct"),
        (&["-r"], "--recursive"),
    ] {
        refused(&check(options), 8, &["--carve: the paths are raw bytes", word])?;
    }
    refused(&mdfsck(folder, &["info", "--carve", "-r", "disk.img"]), 8, &["leave out --recursive"])?;
    refused(&mdfsck(folder, &["tables", "--carve", "--set", "1", "disk.img"]), 8, &["leave out --set"])?;
    refused(&mdfsck(folder, &["rows", "customers", "--carve", "--set", "1", "disk.img"]), 8, &["leave out --set"])?;
    let overwritten = check(&["-o", "disk.img"]);
    let stderr = text(&overwritten.stderr);
    ensure(
        overwritten.status.code() == Some(8) && stderr.contains("disk.img: is one of the files to be checked"),
        stderr,
    )?;
    refused(&mdfsck(folder, &["check", "--carve", "s"]), 8, &["s: is a folder", "name the files in it"])?;
    refused(&mdfsck(folder, &["check", "--carve", "-"]), 8, &["standard input"])?;
    refused(&mdfsck(folder, &["check", "--carve", "none.img"]), 4, &["none.img: cannot be opened"])?;
    fs::write(folder.join("junk.img"), junk(1 << 20))?;
    refused(&mdfsck(folder, &["check", "--carve", "junk.img"]), 4, &["junk.img: no page of a SQL Server database"])?;
    refused_by_usage(&mdfsck(folder, &["plan", "--carve", "disk.img", "--dir", "p"]), &["--carve"])
}
