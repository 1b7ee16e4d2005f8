//! The output of the commands for backups.

use super::subjects::BackupTest;
use super::*;

pub(super) fn with_backups() -> Vec<(&'static str, BackupTest)> {
    vec![
        ("a backup is checked as its data files would be", |folder, _| {
            let output = mdfsck(folder, &["check", "--physical-only", "full.bak", "diff.bak"]);
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            ensure(
                text(&output.stdout).contains("CHECKDB found 0 allocation errors and 0 consistency errors"),
                "summary",
            )
        }),
        ("lint reads a backup as tables does", |folder, _| {
            let output = mdfsck(folder, &["lint", "full.bak"]);
            ensure(output.status.code() == Some(0) && output.stderr.is_empty(), text(&output.stderr))?;
            refused(&mdfsck(folder, &["lint", "full.bak", "--set", "2"]), 8, &["full.bak", "the file contains 1"])
        }),
        ("a log backup and a lone differential are refused by name", |folder, _| {
            refused(&mdfsck(folder, &["check", "log1.trn"]), 4, &["log1.trn", "has no pages to check"])?;
            refused(&mdfsck(folder, &["check", "diff.bak"]), 4, &["diff.bak", "name the full backup"])?;
            refused(&mdfsck(folder, &["check", "full.bak", "--set", "2"]), 8, &["full.bak", "the file contains 1"])
        }),
        ("info of a backup lists its sets and files", |folder, of| {
            let output = text(&mdfsck(folder, &["info", "full.bak"]).stdout);
            for words in ["Database", of.name, "first LSN", "pages copied", of.finished[0]] {
                ensure(output.contains(words), format!("{words} is not in {output}"))?;
            }
            let output = text(&mdfsck(folder, &["info", "--json", "diff.bak"]).stdout);
            ensure(output.contains("\"type\":5") && output.contains("\"differential_base_lsn\":\""), output)
        }),
        ("chain shows until when one can restore, and where the log breaks off", |folder, of| {
            let output = mdfsck(folder, &["chain", "."]);
            ensure(output.status.code() == Some(0), text(&output.stderr))?;
            let until = |time| format!("can be restored until {time}");
            ensure(text(&output.stdout).contains(&until(of.finished[1])), text(&output.stdout))?;
            fs::remove_file(folder.join("log2.trn"))?;
            let output = mdfsck(folder, &["chain", "."]);
            ensure(output.status.code() == Some(16), "a gap sets bit 16")?;
            let stdout = text(&output.stdout);
            ensure(stdout.contains(&until(of.finished[2])) && stdout.contains("gap: log from LSN"), stdout)
        }),
        ("extract writes the data files once and overwrites nothing", |folder, of| {
            let arguments = ["extract", "full.bak", "diff.bak", "--output", "out"];
            let output = mdfsck(folder, &arguments);
            let file = folder.join(text(&output.stdout).trim_end());
            ensure(
                output.status.code() == Some(0) && text(&output.stderr).contains("not recovered"),
                text(&output.stderr),
            )?;
            let written = fs::read(&file)?;
            ensure(written.len() == of.pages * PAGE_BYTES, format!("{} bytes", written.len()))?;
            refused(&mdfsck(folder, &arguments), 8, &["will not be overwritten"])?;
            // If an earlier run was interrupted, the next run compares the existing part of the file with the backup,
            // and appends the remaining bytes.
            let partial = PathBuf::from(format!("{}.partial", file.display()));
            fs::remove_file(&file)?;
            fs::write(&partial, &written[..1_000_000])?;
            ensure(mdfsck(folder, &arguments).status.code() == Some(0), "completed")?;
            ensure(fs::read(&file)? == written && !partial.exists(), "the same file")?;
            fs::remove_file(&file)?;
            fs::write(&partial, [7; 100])?;
            refused(&mdfsck(folder, &arguments), 8, &["differs from this backup"])?;
            let pages = mdfsck(folder, &["page", "1:9", "full.bak"]);
            ensure(pages.status.code() == Some(0) && text(&pages.stdout).contains("boot page"), "page of a backup")
        }),
    ]
}
