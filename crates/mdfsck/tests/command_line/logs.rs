//! Logs that do not belong, cannot be read or are not all there: one clear line, the right exit bit.

use super::*;

const HEADER: usize = PAGE_BYTES;
const VLF: usize = 0x3E000;

/// A database of the lab that was in use, in the folder `name`.
fn crash(folder: &Path, name: &str, seed: &str) -> Result<(), Failed> {
    let done = mdfsck(folder, &["lab", "crash", name, "--seed", seed, "--open", "--transactions", "80"]);
    ensure(done.status.success(), text(&done.stderr))
}

/// Moves the last VLFs of a log to a second file, as if the log had been created with two.
fn split(log: &Path, second: &Path) -> Result<(), Failed> {
    const FILE_ID: usize = 36;
    let bytes = fs::read(log)?;
    let vlfs = (bytes.len() - HEADER) / VLF;
    let (first, rest) = bytes.split_at(HEADER + vlfs / 2 * VLF);
    let mut header: [u8; PAGE_BYTES] = bytes[..HEADER].try_into()?;
    header[FILE_ID] = 3;
    let slot = usize::from(u16::from_le_bytes([header[PAGE_BYTES - 2], header[PAGE_BYTES - 1]]));
    let found = format::file_header::FileHeader::read(format::Page::new(&header)).ok_or("a file header")?.file_id();
    ensure(found == 2, "the file ID of a log")?;
    // The record has its file ID too, the first value that is 2 and becomes 3 when changed.
    let at = (slot..slot + 600).find(|&at| {
        let mut changed = header;
        changed[at] = if changed[at] == 2 { 3 } else { changed[at] };
        format::file_header::FileHeader::read(format::Page::new(&changed)).is_some_and(|header| header.file_id() == 3)
    });
    header[at.ok_or("the file ID")?] = 3;
    let sum = checksum(&header);
    header[60..64].copy_from_slice(&sum.to_le_bytes());
    let mut moved = header.to_vec();
    moved.extend(rest);
    for at in (HEADER..moved.len()).step_by(VLF) {
        moved[at + 0x18..at + 0x20].copy_from_slice(&(at as u64).to_le_bytes());
    }
    fs::write(second, moved)?;
    Ok(fs::write(log, first)?)
}

pub(crate) fn with_logs() -> Vec<(&'static str, Test)> {
    vec![
        ("a log in two files recovers as one does, and each is missed when it is not there", |folder| {
            crash(folder, "db", "5")?;
            let tables = |arguments: &[&str]| mdfsck(folder, &[&["check", "--no-infomsgs"], arguments].concat());
            let state = |output: &Output| text(&output.stderr).lines().next().unwrap_or_default().to_owned();
            let whole = tables(&["db/workload.mdf"]);
            ensure(state(&whole).contains("recovered in memory"), state(&whole))?;
            split(&folder.join("db/workload_log.ldf"), &folder.join("db/second.ldf"))?;
            for way in [&["db"][..], &["db/workload.mdf", "db/second.ldf", "db/workload_log.ldf"]] {
                let both = tables(way);
                ensure(both.status.code() == Some(0) && state(&both) == state(&whole), state(&both))?;
            }
            let lacks_first = tables(&["db/workload.mdf", "db/second.ldf"]);
            refused(&lacks_first, 8, &["second.ldf", "workload_log.ldf (file ID 2)", "all of its files are needed"])
        }),
        ("logs that are not those of the data files", |folder| {
            crash(folder, "db", "5")?;
            crash(folder, "other", "6")?;
            let (data, log, foreign) = ("db/workload.mdf", "db/workload_log.ldf", "other/workload_log.ldf");
            let check = |arguments: &[&str]| mdfsck(folder, &[&["check"], arguments].concat());
            refused(&check(&[log]), 4, &["workload_log.ldf", "log"])?;
            refused(&check(&[data, foreign]), 8, &["other/workload_log.ldf", "--no-log"])?;
            refused(&check(&[data, log, foreign]), 8, &["other/workload_log.ldf", "name"])?;
            refused(&check(&[data, log, log]), 8, &["same file ID 2", "name each log file once"])?;
            fs::copy(folder.join(log), folder.join("copy.ldf"))?;
            refused(&check(&[data, log, "copy.ldf"]), 8, &["copy.ldf", "same file ID 2"])?;
            refused(&mdfsck(folder, &["log", log, "copy.ldf"]), 8, &["copy.ldf", "same file ID 2"])?;
            // Of the same database, from another moment: here of before the checkpoint that the boot page names.
            let done = mdfsck(folder, &["lab", "crash", "early", "--seed", "5", "--after", "20"]);
            ensure(done.status.success(), text(&done.stderr))?;
            refused(&check(&[data, "early/workload_log.ldf"]), 8, &["of another moment", "--no-log"])
        }),
        ("logs that hold nothing, or are cut", |folder| {
            crash(folder, "db", "5")?;
            let (data, log) = ("db/workload.mdf", "db/workload_log.ldf");
            let bytes = fs::read(folder.join(log))?;
            let check = |name: &str| mdfsck(folder, &["check", data, name]);
            fs::write(folder.join("empty.ldf"), [])?;
            refused(&check("empty.ldf"), 4, &["empty.ldf"])?;
            refused(&mdfsck(folder, &["log", "empty.ldf"]), 4, &["empty.ldf"])?;
            let mut unused = bytes.clone();
            for at in (HEADER..unused.len()).step_by(VLF) {
                unused[at + 1] = 0;
                unused[at + 4..at + 16].fill(0);
            }
            fs::write(folder.join("unused.ldf"), unused)?;
            refused(&check("unused.ldf"), 4, &["unused.ldf", "never been written"])?;
            refused(&mdfsck(folder, &["log", "unused.ldf"]), 4, &["unused.ldf", "never been written"])?;
            // Beside the data files it is passed over, and said.
            fs::write(folder.join(log), &bytes[..HEADER])?;
            let cut = mdfsck(folder, &["tables", data]);
            let said = ["workload_log.ldf", "passed over", "without the changes in the log"];
            ensure(said.iter().all(|words| text(&cut.stderr).contains(words)), text(&cut.stderr))
        }),
    ]
}
