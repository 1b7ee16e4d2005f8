//! Output in the same form as from DBCC: TABLERESULTS, ESTIMATEONLY, and the line in the error log.

use std::fs;

use super::database::edit;
use super::subjects::DatabaseTest;
use super::{ensure, mdfsck, refused, refused_by_usage, text};

pub(crate) fn forms() -> Vec<(&'static str, DatabaseTest)> {
    vec![
        ("--tableresults takes the columns of older servers and no others", |folder, _| {
            let newer = text(&mdfsck(folder, &["check", "--tableresults", "a.mdf"]).stdout);
            ensure(newer.starts_with("Error,Level,State,MessageText,RepairLevel,Status,DbId,DbFragId,"), &newer)?;
            let same = text(&mdfsck(folder, &["check", "--tableresults=2012", "a.mdf"]).stdout);
            ensure(same == newer && !newer.contains("NULL"), "2012")?;
            let older = text(&mdfsck(folder, &["check", "--tableresults=2008", "a.mdf"]).stdout);
            ensure(older.starts_with("Error,Level,State,MessageText,RepairLevel,Status,DbId,Id,IndId,"), &older)?;
            ensure(older.lines().count() == newer.lines().count(), "rows")?;
            refused_by_usage(&mdfsck(folder, &["check", "--tableresults=2000", "a.mdf"]), &["2000", "2008", "2012"])?;
            // Without '=', the value is read as a path.
            let output = mdfsck(folder, &["check", "--tableresults", "2008", "a.mdf"]);
            ensure(output.status.code() == Some(4), text(&output.stderr))
        }),
        ("--estimate-only agrees with what --memory accepts", |folder, _| {
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
            // Scripts expect the single line that DBCC prints. All other lines go to stderr.
            let quiet = mdfsck(folder, &["check", "--estimate-only", "--no-infomsgs", "a.mdf"]);
            let (line, rest) = (text(&quiet.stdout), text(&quiet.stderr));
            ensure(
                line.lines().count() == 1 && line.starts_with("Estimated TEMPDB space (in KB) needed for CHECKDB"),
                &line,
            )?;
            ensure(rest.contains(&format!("at least {} (--memory)", least.div_ceil(1024))), &rest)?;
            let rows = mdfsck(folder, &["check", "--estimate-only", "--tableresults", "a.mdf"]);
            ensure(text(&rows.stdout).lines().count() == 2, text(&rows.stdout))?;
            ensure(text(&rows.stderr).contains("Estimated memory (in KB) needed"), text(&rows.stderr))
        }),
        ("--errorlog-line appends a line to a file, and never to one that is checked", |folder, of| {
            edit(&folder.join("a.mdf"), of.rows_at[2], |bytes| bytes[1000] ^= 0xFF);
            let plain = mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]);
            for count in 1..=2 {
                let output = mdfsck(folder, &["check", "--no-infomsgs", "--errorlog-line", "ERRORLOG", "a.mdf"]);
                ensure(output.stdout == plain.stdout && output.status == plain.status, text(&output.stderr))?;
                let log = fs::read_to_string(folder.join("ERRORLOG"))?;
                ensure(log.lines().count() == count, &log)?;
                let line = log.lines().last().unwrap_or_default();
                ensure(line.get(22..27) == Some(" spid"), line)?;
                let start = format!("DBCC CHECKDB ({}) WITH no_infomsgs executed by ", of.name);
                ensure(line.contains(&start), line)?;
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
        ("info --tableresults is the boot page as DBINFO prints it", |folder, of| {
            // Sets a time in the boot page to the datetime 2014-03-02 11:20:10.123. The first number counts ticks of
            // 1/300 second since midnight, the second counts days since 1900-01-01.
            let stamp = [12_243_037_u32.to_le_bytes(), 41_698_u32.to_le_bytes()].concat();
            edit(&folder.join("a.mdf"), 9, |bytes| bytes[96 + 652..96 + 660].copy_from_slice(&stamp));
            let rows = text(&mdfsck(folder, &["info", "--tableresults", "a.mdf"]).stdout);
            ensure(rows.starts_with("ParentObject,Object,Field,VALUE\n"), &rows)?;
            let found = |field: &str| -> Vec<&str> {
                let is_of = |line: &&str| line.split(',').nth(2) == Some(field);
                rows.lines().filter(is_of).collect()
            };
            let start = "DBINFO STRUCTURE:,DBINFO @0x0000000000000060,";
            for (field, value) in [
                ("dbi_dbccLastKnownGood", "2014-03-02 11:20:10.123"),
                ("dbi_dbname", of.name),
                ("dbi_version", of.version.0),
                ("dbi_updSysCatalog", "1900-01-01 00:00:00.000"),
                ("dbi_verRDB", of.build),
                ("dbi_LastLogBackupTime", "1900-01-01 00:00:00.000"),
            ] {
                let row = format!("{start}{field},{value}");
                ensure(found(field) == [row.as_str()], format!("{row}\n{rows}"))?;
            }
            let lsn = found("dbi_checkptLSN").concat();
            ensure(lsn.contains(" (0x0000") && lsn.matches(':').count() == 5, lsn)?;
            ensure(found("m_guid").len() == 2 && found("hex (dec)").len() == 2, &rows)?;
            refused_by_usage(&mdfsck(folder, &["info", "--tableresults", "--json", "a.mdf"]), &["--json"])?;
            refused(&mdfsck(folder, &["info", "--tableresults", "-"]), 8, &["standard input"])?;
            let mut bytes = fs::read(folder.join("a.mdf"))?;
            bytes[9 * 8192 + 2000] ^= 0xFF;
            fs::write(folder.join("a.mdf"), bytes)?;
            refused(&mdfsck(folder, &["info", "--tableresults", "a.mdf"]), 4, &["boot page (1:9) is damaged"])
        }),
        ("page --tableresults says what page --json says, in the rows of DBCC PAGE", |folder, of| {
            let mut columns = 0;
            let records = of.records.map(|page| format!("1:{page}"));
            for page in ["1:9", "1:2", "1:1", &records[0], &records[1]] {
                let output = mdfsck(folder, &["page", page, "--tableresults", "a.mdf"]);
                let rows = text(&output.stdout);
                ensure(output.status.success(), text(&output.stderr))?;
                let json: serde_json::Value =
                    serde_json::from_slice(&mdfsck(folder, &["page", page, "--json", "a.mdf"]).stdout)?;
                let start = "PAGE HEADER:,Page @0x0000000000000000,";
                for (field, value) in [("m_pageId", &json["page"]), ("Metadata: AllocUnitId", &json["alloc_unit_id"])] {
                    let row = format!("\n{start}{field},{}\n", value.as_str().unwrap_or_default());
                    ensure(rows.contains(&row), format!("{row}{rows}"))?;
                }
                ensure(rows.contains(&format!("\n{start}m_type,{}\n", json["type"])), &rows)?;
                ensure(rows.contains("\nPAGE HEADER:,Allocation Status,GAM (1:2),ALLOCATED\n"), &rows)?;
                let records = json["records"].as_array().map_or(0, Vec::len);
                ensure(rows.matches(",Record Size,").count() == records, format!("{records} records\n{rows}"))?;
                ensure(rows.contains(",Memory Dump @0x0000000000000060,,0000000000000000:   "), &rows)?;
                columns += rows.matches(",Slot 0 Column 1 Offset 0x").count();
            }
            ensure(columns > 0, "no columns")?;
            refused(&mdfsck(folder, &["page", "1:99999999", "--tableresults", "a.mdf"]), 8, &["(1:99999999)"])?;
            refused_by_usage(&mdfsck(folder, &["page", "1:9", "--tableresults", "--raw", "a.mdf"]), &["--raw"])
        }),
        ("a catalog that was updated by hand is a warning and no error", |folder, _| {
            let plain = mdfsck(folder, &["check", "a.mdf"]);
            // Sets a time in the boot page to the datetime 2011-03-10 08:09. The first number counts ticks of 1/300
            // second since midnight, the second counts days since 1900-01-01.
            let stamp = [8_802_000_u32.to_le_bytes(), 40_610_u32.to_le_bytes()].concat();
            edit(&folder.join("a.mdf"), 9, |bytes| bytes[96 + 632..96 + 640].copy_from_slice(&stamp));
            let warning = "Warning: The system catalog was updated directly in database ID ";
            let time = ", most recently at Mar 10 2011  8:09AM.";
            let output = mdfsck(folder, &["check", "a.mdf"]);
            let stdout = text(&output.stdout);
            let lines: Vec<&str> = stdout.lines().collect();
            let at = lines.iter().position(|line| line.contains(warning)).ok_or("no warning")?;
            ensure(lines[at].starts_with("Check Catalog Msg 3859, State 1: ") && lines[at].ends_with(time), lines[at])?;
            ensure(lines[at - 1] == "Msg 8992, Level 16, State 1, Line 1", lines[at - 1])?;
            let rest: Vec<&str> = [&lines[..at - 1], &lines[at + 1..]].concat();
            ensure(rest == text(&plain.stdout).lines().collect::<Vec<_>>(), "the rest is as before")?;
            ensure(output.status == plain.status, "no error")?;
            let catalog = text(&mdfsck(folder, &["check", "--catalog", "a.mdf"]).stdout);
            ensure(catalog.lines().any(|line| line.starts_with(warning)) && !catalog.contains("8992"), catalog)?;
            let rows = text(&mdfsck(folder, &["check", "--tableresults", "a.mdf"]).stdout);
            ensure(rows.lines().any(|line| line.starts_with("8992,16,1,\"Check Catalog Msg 3859")), "a row")?;
            let json = text(&mdfsck(folder, &["check", "--json", "a.mdf"]).stdout);
            ensure(
                json.contains("\"catalog_updated\":\"2011-03-10 08:09:00.000\"") && !json.contains("\"msg\":3859"),
                "a key",
            )?;
            let physical = text(&mdfsck(folder, &["check", "--physical-only", "a.mdf"]).stdout);
            ensure(!physical.contains(warning), physical)?;
            // If the bytes are not a valid time, the program ignores them.
            edit(&folder.join("a.mdf"), 9, |bytes| bytes[96 + 632..96 + 640].fill(0x5A));
            ensure(mdfsck(folder, &["check", "a.mdf"]).stdout == plain.stdout, "no time")
        }),
        ("--constraints takes all and nothing else", |folder, _| {
            let trusted = mdfsck(folder, &["check", "--constraints", "a.mdf"]);
            // All constraints of the sample are trusted, so both options check the same constraints.
            ensure(mdfsck(folder, &["check", "--constraints=all", "a.mdf"]).stdout == trusted.stdout, "all")?;
            refused_by_usage(&mdfsck(folder, &["check", "--constraints=none", "a.mdf"]), &["none", "all"])?;
            let json = text(&mdfsck(folder, &["check", "--constraints=all", "--json", "a.mdf"]).stdout);
            ensure(json.contains("\"all_constraints\":true") && json.contains("\"enabled\":true"), "json")
        }),
        ("--log never changes the verdict", |folder, _| {
            let plain = mdfsck(folder, &["check", "a.mdf"]);
            let output = mdfsck(folder, &["check", "--log", "a.mdf"]);
            ensure(output.stdout == plain.stdout && output.status == plain.status, text(&output.stderr))?;
            let news = text(&output.stderr).replace(&text(&plain.stderr), "");
            ensure(news.is_empty() || news.starts_with("mdfsck: --log: ") && news.lines().count() == 1, news)
        }),
    ]
}
