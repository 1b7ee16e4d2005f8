//! The output of the commands for a sound or damaged database.

use super::subjects::DatabaseTest;
use super::*;

/// Changes page `page` of `file` and corrects its checksum.
pub(super) fn edit(file: &Path, page: usize, change: impl FnOnce(&mut [u8; PAGE_BYTES])) {
    let mut bytes = fs::read(file).expect("file");
    let target = bytes[page * PAGE_BYTES..].first_chunk_mut().expect("page");
    change(target);
    let sum = checksum(target);
    target[60..64].copy_from_slice(&sum.to_le_bytes());
    fs::write(file, bytes).expect("file");
}

/// Turns a copy of the sample file into data file 3 of the same database.
fn make_secondary(file: &Path) {
    edit(file, 0, |page| {
        page[36] = 3;
        // The file ID is the third variable-length column of the record in slot 0.
        let record = usize::from(u16::from_le_bytes([page[8190], page[8191]]));
        let fixed = usize::from(u16::from_le_bytes([page[record + 2], page[record + 3]]));
        let columns = usize::from(u16::from_le_bytes([page[record + fixed], page[record + fixed + 1]]));
        let offsets = record + fixed + 2 + columns.div_ceil(8) + 2;
        let start = usize::from(u16::from_le_bytes([page[offsets + 2], page[offsets + 3]]));
        page[record + start] = 3;
    });
}

/// Moves a table into a schema that does not exist.
fn lose_schema(file: &Path, object: i32) {
    const SYSSCHOBJS: i32 = 34;
    let source = source::DataFiles::open(&[file.to_owned()]).expect("data file");
    let database = catalog::load(&source);
    let is_table = |rowset: &&catalog::Rowset| (rowset.object_id, rowset.index_id) == (SYSSCHOBJS, 1);
    let rowset = database.rowsets.iter().find(is_table).expect("sysschobjs");
    let unit = database.units[rowset.units[0]].id;
    let bytes = fs::read(file).expect("file");
    let record_of = |page: &[u8]| {
        let header = *format::Page::new(page.first_chunk().expect("page")).header();
        let id_at = |offset: usize| page.get(offset..offset + 4) == Some(object.to_le_bytes().as_slice());
        let is_of_table = header.page_type == 1 && header.alloc_unit() == unit;
        (96..8000).find(|record| is_of_table && page[*record] == 0x30 && id_at(record + 4))
    };
    let mut pages = bytes.chunks_exact(PAGE_BYTES).enumerate();
    let (page, record) = pages.find_map(|(at, page)| Some((at, record_of(page)?))).expect("the table");
    edit(file, page, |page| page[record + 8..record + 12].copy_from_slice(&4242i32.to_le_bytes()));
}

pub(super) fn with_database() -> Vec<(&'static str, DatabaseTest)> {
    vec![
        ("a sound database has no finding", |folder, of| {
            let output = mdfsck(folder, &["check", "a.mdf"]);
            let stdout = text(&output.stdout);
            ensure(output.status.code() == Some(0), format!("{:?}", output.status))?;
            let heading = format!(
                "DBCC results for '{}'.\n\
                           Service Broker Msg 9675, State 1: Message Types analyzed: 14.\n\
                           Service Broker Msg 9676, State 1: Service Contracts analyzed: 6.\n\
                           Service Broker Msg 9667, State 1: Services analyzed: 3.\n\
                           Service Broker Msg 9668, State 1: Service Queues analyzed: 3.\n\
                           Service Broker Msg 9669, State 1: Conversation Endpoints analyzed: 0.\n\
                           Service Broker Msg 9674, State 1: Conversation Groups analyzed: 0.\n\
                           Service Broker Msg 9670, State 1: Remote Service Bindings analyzed: 0.\n\
                           Service Broker Msg 9605, State 1: Conversation Priorities analyzed: 0.\n\
                           DBCC results for 'sys.sysrscols'.\n",
                of.name
            );
            ensure(stdout.starts_with(&heading), "heading")?;
            ensure(stdout.contains(of.rows), "2593")?;
            let summary =
                format!("CHECKDB found 0 allocation errors and 0 consistency errors in database '{}'.\n", of.name);
            ensure(stdout.contains(&summary), "8989")
        }),
        ("constraints are checked when asked for, and reported", |folder, of| {
            let output = mdfsck(folder, &["check", "--constraints", "--exit-zero-on-incomplete", "a.mdf"]);
            let (checks, keys) = of.constraints;
            let line = format!(
                "{checks} CHECK and {keys} FOREIGN KEY constraints hold for all rows; 0 are disabled or not trusted.\n"
            );
            ensure(output.status.code() == Some(0) && text(&output.stdout).contains(&line), text(&output.stdout))?;
            let json = text(&mdfsck(folder, &["check", "--constraints", "--format", "json", "a.mdf"]).stdout);
            let lines = json.lines().filter(|line| line.contains(r#""kind":"constraint""#));
            ensure(lines.filter(|line| line.contains(r#""verified":true"#)).count() == checks + keys, json.clone())?;
            let json = text(&mdfsck(folder, &["check", "--format", "json", "a.mdf"]).stdout);
            ensure(!json.contains(r#""kind":"constraint""#), "not asked for")
        }),
        ("identity columns are reported in CHECKIDENT's words", |folder, of| {
            let output = mdfsck(folder, &["check", "--identity", "--exit-zero-on-incomplete", "a.mdf"]);
            let (line, column, farthest) = of.identity;
            ensure(output.status.code() == Some(0) && text(&output.stdout).contains(line), text(&output.stdout))?;
            let json = text(&mdfsck(folder, &["check", "--identity", "--format", "json", "a.mdf"]).stdout);
            let (column, farthest) = (format!(r#""column":"{column}""#), format!(r#""farthest":"{farthest}""#));
            let fields = [r#""kind":"identity""#, &column, &farthest, r#""behind":false"#];
            ensure(json.lines().any(|line| fields.iter().all(|field| line.contains(field))), json)
        }),
        ("physical-only is complete: status 0", |folder, _| {
            let output = mdfsck(folder, &["check", "--physical-only", "a.mdf"]);
            ensure(output.status.code() == Some(0), format!("{:?} {}", output.status, text(&output.stdout)))
        }),
        ("a folder means the data files in it, other files are ignored", |folder, _| {
            fs::write(folder.join("readme.txt"), "hello")?;
            let output = mdfsck(folder, &["check", "--physical-only", "."]);
            ensure(output.status.code() == Some(0), text(&output.stderr))
        }),
        ("corruption sets bit 1 and names the page", |folder, of| {
            edit(&folder.join("a.mdf"), of.leaf, |page| page[8] ^= 1);
            let output = mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]);
            let stdout = text(&output.stdout);
            ensure(output.status.code() == Some(17), format!("{:?}", output.status))?;
            let page = format!("(1:{})", of.leaf);
            ensure(stdout.contains("Msg 8935, Level 16, State 1, Line 1\n") && stdout.contains(&page), stdout)
        }),
        ("text and JSON are the same at maxdop 1 and 8", |folder, of| {
            edit(&folder.join("a.mdf"), of.leaf, |page| page.fill(0));
            edit(&folder.join("a.mdf"), of.other, |page| page[16] ^= 1);
            for format in ["text", "json", "tableresults"] {
                let run = |maxdop| {
                    let output = mdfsck(folder, &["check", "--format", format, "--maxdop", maxdop, "a.mdf"]);
                    // Only the summary contains times and memory.
                    text(&output.stdout)
                        .lines()
                        .filter(|line| !line.contains("\"seconds\""))
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                };
                ensure(run("1") == run("8") && run("1").len() > 5, format)?;
            }
            Ok(())
        }),
        ("the order of options means nothing", |folder, of| {
            edit(&folder.join("a.mdf"), of.leaf, |page| page.fill(0));
            edit(&folder.join("a.mdf"), of.other, |page| page[16] ^= 1);
            let mut options =
                [&["--maxdop", "2"][..], &["--memory", "64MB"], &["--batches", "2"], &["--no-infomsgs"], &["a.mdf"]];
            let run = |options: &[&[&str]]| text(&mdfsck(folder, &[&["check"], &options.concat()[..]].concat()).stdout);
            let first = run(&options);
            ensure(first.contains("Msg 8928") && first.contains("Msg 8936"), &first)?;
            for _ in 0..options.len() {
                options.rotate_left(1);
                ensure(run(&options) == first, format!("{options:?}"))?;
                ensure(
                    run(&options.iter().rev().copied().collect::<Vec<_>>()) == first,
                    format!("{options:?} reversed"),
                )?;
            }
            Ok(())
        }),
        ("the summary says how much was verified, in however many passes", |folder, _| {
            let verified = |extra: &[&str]| -> Result<serde_json::Value, Failed> {
                let output = mdfsck(folder, &[&["check", "--format", "json"][..], extra, &["a.mdf"]].concat());
                let summary: serde_json::Value =
                    serde_json::from_str(text(&output.stdout).lines().last().unwrap_or_default())?;
                Ok(summary["verified"].clone())
            };
            let all = verified(&[])?;
            ensure(all["indexes"].as_u64() > Some(40) && all["index_rows"].as_u64() > Some(10_000), all.to_string())?;
            ensure(all["column_values"].as_u64() > Some(100_000), all.to_string())?;
            ensure(verified(&["--batches", "9", "--maxdop", "3"])? == all, "passes")
        }),
        ("JSON lines parse, the first has the version of the format", |folder, _| {
            let output = mdfsck(folder, &["check", "--format", "json", "a.mdf"]);
            let mut kinds = Vec::new();
            for line in text(&output.stdout).lines() {
                let value: serde_json::Value = serde_json::from_str(line)?;
                kinds.push(value["kind"].as_str().unwrap_or_default().to_owned());
            }
            ensure(
                kinds.first().is_some_and(|kind| kind == "run") && kinds.last().is_some_and(|kind| kind == "summary"),
                "order",
            )?;
            ensure(kinds.iter().filter(|kind| *kind == "object").count() > 50, "objects")
        }),
        ("a truncated file says so: status 4, 16 and findings", |folder, of| {
            let bytes = fs::read(folder.join("a.mdf"))?;
            fs::write(folder.join("a.mdf"), &bytes[..of.cut * PAGE_BYTES + 100])?;
            let output = mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]);
            ensure(output.status.code() == Some(1 + 4 + 16), format!("{:?}", output.status))?;
            ensure(text(&output.stderr).contains("the file was cut"), text(&output.stderr))?;
            ensure(text(&output.stdout).contains("Msg 2579,"), "2579")
        }),
        ("a secondary file without its primary is refused", |folder, _| {
            make_secondary(&folder.join("a.mdf"));
            refused(&mdfsck(folder, &["check", "a.mdf"]), 4, &["a.mdf", "primary file"])
        }),
        ("two primary files are refused by what reads one database", |folder, _| {
            fs::copy(folder.join("a.mdf"), folder.join("b.mdf"))?;
            refused(&mdfsck(folder, &["tables", "a.mdf", "b.mdf"]), 8, &["a.mdf", "b.mdf", "both are file 1"])
        }),
        ("a file of another database is refused", |folder, _| {
            let other = folder.join("b.ndf");
            fs::copy(folder.join("a.mdf"), &other)?;
            make_secondary(&other);
            edit(&other, 0, |page| {
                let record = usize::from(u16::from_le_bytes([page[8190], page[8191]]));
                let fixed = usize::from(u16::from_le_bytes([page[record + 2], page[record + 3]]));
                let columns = usize::from(u16::from_le_bytes([page[record + fixed], page[record + fixed + 1]]));
                let at = record + fixed + 2 + columns.div_ceil(8);
                let variable = usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
                page[at + 2 + 2 * variable] ^= 0xFF;
            });
            refused(&mdfsck(folder, &["check", "a.mdf", "b.ndf"]), 4, &["b.ndf", "another database"])
        }),
        ("SQL Server 2000 is refused by name", |folder, _| {
            edit(&folder.join("a.mdf"), 9, |page| page[100..102].copy_from_slice(&539u16.to_le_bytes()));
            refused(&mdfsck(folder, &["check", "a.mdf"]), 4, &["539", "SQL Server 2000"])
        }),
        ("a newer version is reported, and checked as far as possible", |folder, _| {
            edit(&folder.join("a.mdf"), 9, |page| page[100..102].copy_from_slice(&1200u16.to_le_bytes()));
            let output = mdfsck(folder, &["check", "--physical-only", "a.mdf"]);
            ensure(output.status.code() == Some(16), format!("{:?}", output.status))?;
            ensure(text(&output.stderr).contains("1200 is newer"), text(&output.stderr))
        }),
        ("info shows version, name and state", |folder, of| {
            let output = mdfsck(folder, &["info", "a.mdf"]);
            let stdout = text(&output.stdout);
            let told = [of.name, of.version.0, "clean", "checksum", of.version.1];
            ensure(output.status.code() == Some(0) && told.iter().all(|word| stdout.contains(word)), stdout)
        }),
        ("an encrypted database is not verified, never corrupt", |folder, _| {
            for page in 1..4 {
                edit(&folder.join("a.mdf"), page, |bytes| {
                    // Sets the header bits for encryption and for the key, as SQL Server does in the headers of
                    // encrypted allocation maps.
                    bytes[4] |= 0x08;
                    bytes[5] |= 0x08;
                    bytes[96..].iter_mut().for_each(|byte| *byte ^= 0x5A);
                });
            }
            let output = mdfsck(folder, &["check", "a.mdf"]);
            ensure(output.status.code() == Some(16), format!("{:?}", output.status))?;
            ensure(text(&output.stdout).contains("encrypted (TDE)"), text(&output.stdout))
        }),
        ("--table, --alloc and --filegroup narrow the run", |folder, of| {
            let table = mdfsck(folder, &["check", "--table", of.table, "a.mdf"]);
            let heading = format!("DBCC results for '{}'.\n", of.table);
            ensure(text(&table.stdout).starts_with(&heading), text(&table.stdout))?;
            let alloc = mdfsck(folder, &["check", "--alloc", "a.mdf"]);
            ensure(
                alloc.status.code() == Some(0) && text(&alloc.stdout).contains("CHECKALLOC found 0"),
                text(&alloc.stdout),
            )?;
            let group = mdfsck(folder, &["check", "--filegroup", "PRIMARY", "a.mdf"]);
            ensure(text(&group.stdout).contains("CHECKFILEGROUP found 0"), text(&group.stdout))?;
            refused(&mdfsck(folder, &["check", "--table", "NoSuchTable", "a.mdf"]), 8, &["NoSuchTable"])
        }),
        ("--catalog checks the catalog and says no more than CHECKCATALOG", |folder, of| {
            let sound = mdfsck(folder, &["check", "--catalog", "a.mdf"]);
            let completed =
                "DBCC execution completed. If DBCC printed error messages, contact your system administrator.\n";
            ensure(sound.status.code() == Some(0) && text(&sound.stdout) == completed, text(&sound.stdout))?;
            let quiet = mdfsck(folder, &["check", "--catalog", "--no-infomsgs", "a.mdf"]);
            ensure(quiet.status.code() == Some(0) && quiet.stdout.is_empty(), text(&quiet.stdout))?;
            refused(&mdfsck(folder, &["check", "--catalog", "--alloc", "a.mdf"]), 8, &["--catalog", "--alloc"])?;
            refused(&mdfsck(folder, &["check", "--catalog", "--tableresults", "a.mdf"]), 8, &["2532", "TABLERESULTS"])?;
            lose_schema(&folder.join("a.mdf"), of.object);
            let damaged = mdfsck(folder, &["check", "--catalog", "--no-infomsgs", "a.mdf"]);
            let message = format!(
                "Msg 3853, Level 16, State 1, Line 1\n\
                           Attribute (schema_id=4242) of row (object_id={}) in sys.objects does not have a matching \
                           row (schema_id=4242) in sys.schemas.\n",
                of.object
            );
            ensure(damaged.status.code() == Some(1) && text(&damaged.stdout) == message, text(&damaged.stdout))?;
            let whole = text(&mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]).stdout);
            let wrapped = message
                .replace("Msg 3853", "Msg 8992")
                .replace("Attribute", "Check Catalog Msg 3853, State 1: Attribute");
            ensure(whole.starts_with(&wrapped), whole)
        }),
        ("--max-findings shows fewer and counts all", |folder, of| {
            for page in of.many.clone().step_by(2) {
                edit(&folder.join("a.mdf"), page, |bytes| bytes.fill(0));
            }
            let all = text(&mdfsck(folder, &["check", "--no-infomsgs", "a.mdf"]).stdout);
            let few = text(&mdfsck(folder, &["check", "--no-infomsgs", "--max-findings", "3", "a.mdf"]).stdout);
            let messages = |text: &str| text.lines().filter(|line| line.starts_with("Msg ")).count();
            let summary = |text: &str| text.lines().find(|line| line.contains("in database '")).map(str::to_owned);
            ensure(messages(&all) > 30 && messages(&few) == 3 && summary(&all) == summary(&few), few)
        }),
        ("--output writes results there and refuses to overwrite an input", |folder, _| {
            let output = mdfsck(folder, &["check", "--output", "result.txt", "a.mdf"]);
            ensure(
                output.stdout.is_empty() && fs::read_to_string(folder.join("result.txt"))?.contains("CHECKDB found 0"),
                "file",
            )?;
            let before = fs::read(folder.join("a.mdf"))?;
            let output = mdfsck(folder, &["check", "--output", "a.mdf", "a.mdf"]);
            ensure(
                output.status.code() == Some(8) && fs::read(folder.join("a.mdf"))? == before,
                "the input was touched",
            )
        }),
        ("page shows a page of each kind, decoded and raw", |folder, of| {
            let leaf = format!("1:{}", of.leaf);
            for page in ["1:0", "1:1", "1:2", "1:9", &leaf] {
                for extra in [&[][..], &["--raw"], &["--json"]] {
                    let output = mdfsck(folder, &[&["page", page, "a.mdf"][..], extra].concat());
                    ensure(output.status.code() == Some(0) && output.stdout.len() > 300, format!("{page} {extra:?}"))?;
                }
            }
            refused(&mdfsck(folder, &["page", "1:99999", "a.mdf"]), 8, &["99999"])
                .or_else(|_| refused(&mdfsck(folder, &["page", "1:99999", "a.mdf"]), 4, &["99999"]))
        }),
        ("lint names the index on a computed column, and why it costs", |folder, of| {
            let output = mdfsck(folder, &["lint", "a.mdf"]);
            let stdout = text(&output.stdout);
            let told = ["computed-column-index", of.on_computed, "latch"];
            ensure(output.status.code() == Some(0) && told.iter().all(|word| stdout.contains(word)), &stdout)?;
            let lines = text(&mdfsck(folder, &["lint", "--json", "a.mdf"]).stdout);
            let line: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap_or_default())?;
            ensure(line["kind"] == "lint" && line["rule"] == "computed-column-index", lines)
        }),
        ("--estimate-only reports what a check takes and checks nothing", |folder, of| {
            edit(&folder.join("a.mdf"), of.rows_at[2], |bytes| bytes.fill(0));
            let output = mdfsck(folder, &["check", "--estimate-only", "a.mdf"]);
            let stdout = text(&output.stdout);
            ensure(output.status.code() == Some(0), format!("{:?}", output.status))?;
            let space = format!("Estimated TEMPDB space (in KB) needed for CHECKDB on database {} = 0.", of.name);
            ensure(stdout.starts_with(&space) && !stdout.contains("CHECKDB found"), &stdout)?;
            let estimate = text(&mdfsck(folder, &["check", "--estimate-only", "--format", "json", "a.mdf"]).stdout);
            let estimate: serde_json::Value = serde_json::from_str(&estimate)?;
            let run = text(&mdfsck(folder, &["check", "--format", "json", "a.mdf"]).stdout);
            let summary: serde_json::Value = serde_json::from_str(run.lines().last().unwrap_or_default())?;
            let number = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
            ensure(number(&estimate["read_bytes"]) == 8192 * number(&summary["pages_read"]), "bytes read")?;
            let peak = number(&summary["memory_peak"]);
            ensure(peak == 0 || peak <= number(&estimate["memory_bytes"]), format!("peak {peak}, {estimate}"))
        }),
        ("who reads, and in how many passes, does not change the results", |folder, of| {
            for page in of.rows_at {
                edit(&folder.join("a.mdf"), page, |bytes| bytes[1000] ^= 0xFF);
            }
            let plain = mdfsck(folder, &["check", "a.mdf"]).stdout;
            ensure(text(&plain).contains("Msg "), "no findings")?;
            let ways: [&[&str]; 7] = [
                &["--readers", "1"],
                &["--readers", "5", "--maxdop", "1"],
                &["--readers", "per-file", "--maxdop", "3"],
                &["--batches", "one"],
                &["--batches", "7"],
                &["--batches", "40", "--readers", "2"],
                &["--direct"],
            ];
            for way in ways {
                let output = mdfsck(folder, &[&["check"][..], way, &["a.mdf"]].concat());
                // Some file systems do not support direct reads, so `--direct` may end with status 4 instead of giving
                // the same output.
                let ok = output.stdout == plain || way == ["--direct"] && output.status.code() == Some(4);
                ensure(ok, format!("{way:?}: {}", text(&output.stdout)))?;
            }
            refused_by_usage(&mdfsck(folder, &["check", "--readers", "0", "a.mdf"]), &["--readers", "per-file"])
        }),
        (
            "--io-limit, --nice and --stats change the cost and what is reported about it, not the results",
            |folder, _| {
                let plain = mdfsck(folder, &["check", "a.mdf"]);
                let output = mdfsck(folder, &["check", "--io-limit", "60MB", "--nice", "--stats", "a.mdf"]);
                ensure(output.stdout == plain.stdout, text(&output.stdout))?;
                let stderr = text(&output.stderr);
                let told = ["phase", "reading allocation maps", "reading pages", "comparing indexes", "MB granted"];
                ensure(told.iter().all(|word| stderr.contains(word)), stderr)
            },
        ),
        ("a grant that cannot be kept is refused with the number", |folder, _| {
            refused(&mdfsck(folder, &["check", "--memory", "1MB", "a.mdf"]), 8, &["--memory", "1 MB", "needs", "MB"])?;
            refused_by_usage(&mdfsck(folder, &["check", "--memory", "lots", "a.mdf"]), &["--memory", "256MB"])?;
            let output = mdfsck(folder, &["check", "--memory", "1GB", "--temp-dir", ".", "a.mdf"]);
            ensure(output.status.code() == Some(0) || output.status.code() == Some(16), text(&output.stderr))
        }),
        ("inputs are never written", |folder, _| {
            let file = folder.join("a.mdf");
            let before = (fs::read(&file)?, fs::metadata(&file)?.modified()?);
            for command in
                [&["check", "a.mdf"][..], &["info", "a.mdf"], &["tables", "a.mdf"], &["page", "1:9", "a.mdf"]]
            {
                mdfsck(folder, command);
            }
            ensure(before == (fs::read(&file)?, fs::metadata(&file)?.modified()?), "changed")
        }),
    ]
}
