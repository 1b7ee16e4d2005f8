//! DBCC's own forms: TABLERESULTS, ESTIMATEONLY, and the line of the error log.

use std::fs;

use super::database::edit;
use super::{Test, ensure, mdfsck, refused, refused_by_usage, text};

pub(crate) fn forms() -> Vec<(&'static str, Test)> {
    vec![
        ("--tableresults takes the columns of older servers and no others", |folder| {
            let newer = text(&mdfsck(folder, &["check", "--tableresults", "a.mdf"]).stdout);
            ensure(newer.starts_with("Error,Level,State,MessageText,RepairLevel,Status,DbId,DbFragId,"), &newer)?;
            let same = text(&mdfsck(folder, &["check", "--tableresults=2012", "a.mdf"]).stdout);
            ensure(same == newer && !newer.contains("NULL"), "2012")?;
            let older = text(&mdfsck(folder, &["check", "--tableresults=2008", "a.mdf"]).stdout);
            ensure(older.starts_with("Error,Level,State,MessageText,RepairLevel,Status,DbId,Id,IndId,"), &older)?;
            ensure(older.lines().count() == newer.lines().count(), "rows")?;
            refused_by_usage(&mdfsck(folder, &["check", "--tableresults=2000", "a.mdf"]), &["2000", "2008", "2012"])?;
            // Without '=' the value would be a path.
            let output = mdfsck(folder, &["check", "--tableresults", "2008", "a.mdf"]);
            ensure(output.status.code() == Some(4), text(&output.stderr))
        }),
        ("--estimate-only agrees with what --memory accepts", |folder| {
            let json = text(&mdfsck(folder, &["check", "--estimate-only", "--json", "a.mdf"]).stdout);
            let estimate: serde_json::Value = serde_json::from_str(&json)?;
            let number = |name: &str| estimate[name].as_u64().unwrap_or_default();
            let (needed, least) = (number("memory_bytes"), number("minimum_memory_bytes"));
            ensure(0 < least && least <= needed, &json)?;
            for (granted, status) in [(least, 0), (needed, 0), (least - 1, 8)] {
                let output = mdfsck(folder, &["check", "--no-infomsgs", "--memory", &granted.to_string(), "a.mdf"]);
                let code = output.status.code().unwrap_or_default();
                ensure(code & !16 == status, format!("{granted}: {code}, {}", text(&output.stderr)))?;
            }
            let quiet = text(&mdfsck(folder, &["check", "--estimate-only", "--no-infomsgs", "a.mdf"]).stdout);
            ensure(quiet.lines().count() == 2 && !quiet.contains("DBCC execution completed"), &quiet)?;
            ensure(quiet.contains(&format!("at least {} (--memory)", least.div_ceil(1024))), &quiet)?;
            let rows = mdfsck(folder, &["check", "--estimate-only", "--tableresults", "a.mdf"]);
            ensure(text(&rows.stdout).lines().count() == 2, text(&rows.stdout))?;
            ensure(text(&rows.stderr).contains("Estimated memory (in KB) needed"), text(&rows.stderr))
        }),
        ("--errorlog-line appends a line to a file, and never to one that is checked", |folder| {
            edit(&folder.join("a.mdf"), 500, |bytes| bytes[1000] ^= 0xFF);
            let plain = mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]);
            for count in 1..=2 {
                let output = mdfsck(folder, &["check", "--no-infomsgs", "--errorlog-line", "ERRORLOG", "a.mdf"]);
                ensure(output.stdout == plain.stdout && output.status == plain.status, text(&output.stderr))?;
                let log = fs::read_to_string(folder.join("ERRORLOG"))?;
                ensure(log.lines().count() == count, &log)?;
                let line = log.lines().last().unwrap_or_default();
                ensure(line.get(22..27) == Some(" spid"), line)?;
                ensure(line.contains("DBCC CHECKDB (AdventureWorksLT2012) WITH no_infomsgs executed by "), line)?;
                ensure(line.contains(" errors and repaired 0 errors. Elapsed time: 0 hours "), line)?;
                ensure(!line.contains(" found 0 errors"), line)?;
            }
            let output = mdfsck(folder, &["check", "--errorlog-line", "-", "a.mdf"]);
            ensure(
                text(&output.stderr).contains(" executed by ") && !text(&output.stdout).contains(" executed by "),
                "-",
            )?;
            let before = fs::read(folder.join("a.mdf"))?;
            refused(
                &mdfsck(folder, &["check", "--errorlog-line", "a.mdf", "a.mdf"]),
                8,
                &["--errorlog-line", "a.mdf"],
            )?;
            fs::copy(folder.join("a.mdf"), folder.join("b.mdf"))?;
            refused(
                &mdfsck(folder, &["check", "--errorlog-line", "b.mdf", "a.mdf"]),
                8,
                &["b.mdf", "SQL Server file"],
            )?;
            ensure(
                before == fs::read(folder.join("a.mdf"))? && before == fs::read(folder.join("b.mdf"))?,
                "unchanged",
            )?;
            refused(&mdfsck(folder, &["check", "--errorlog-line", "no/ERRORLOG", "a.mdf"]), 4, &["no/ERRORLOG"])?;
            refused_by_usage(
                &mdfsck(folder, &["check", "--errorlog-line", "x", "--estimate-only", "a.mdf"]),
                &["--estimate-only"],
            )
        }),
        ("--log never changes the verdict", |folder| {
            let plain = mdfsck(folder, &["check", "a.mdf"]);
            let output = mdfsck(folder, &["check", "--log", "a.mdf"]);
            ensure(output.stdout == plain.stdout && output.status == plain.status, text(&output.stderr))?;
            let news = text(&output.stderr).replace(&text(&plain.stderr), "");
            ensure(news.is_empty() || news.starts_with("mdfsck: --log: ") && news.lines().count() == 1, news)
        }),
    ]
}
