//! Cries for help: what people reported about damaged databases and backups in public. Each test builds the files of a
//! report, and requires the answer that helps.

use serde_json::Value;

use super::pasted::explain;
use super::*;

pub(super) fn of_reports() -> Vec<(&'static str, Test)> {
    vec![
        (
            "a damaged page that recovery needs is a finding with the log and without it, and recovery is said to stop",
            page_that_recovery_needs,
        ),
        ("check, info and advise name the log that is missing, and none of them says that all was verified", lost_log),
        ("a log whose first page is overwritten is damaged, and advise has the ways without it", log_without_header),
        (
            "a changed byte of a log block is damage at its offset, with intact blocks behind it, and no other moment",
            changed_log_block,
        ),
        (
            "a backup without its first blocks is known as one, and its rows are those of the whole backup",
            backup_without_beginning,
        ),
        ("a backup of which 128 bytes of each 128 KB are encrypted is never restored as a whole", encrypted_twice),
        ("bytes after the last page of a file are in the summary, and change no result", appended_note),
        ("a disk image is refused with the command that reads its pages, and the command reads them", disk_images),
        ("advise repeats the patterns of the damage, in each of its forms", advice_with_patterns),
        ("the map of a page has the range of each pattern", patterns_on_the_map),
        ("a compressed backup that cannot be decompressed may be one of a database with TDE", unknown_compression),
        ("explain says of each benign message that the database is not damaged", benign_messages),
        ("a failed write of the log comes before what followed from it", failed_log_write),
        ("the line for the error log has a name without a blank, whoever runs the program", user_without_name),
        ("the help of compare-dbcc says each reason for bit 16", help_on_incomplete_comparisons),
        ("a numeric value of minus zero is found, and advise has the statements for its row in the table", minus_zero),
        ("an extent that is in use and called free has the same advice in advise and in explain", same_advice),
    ]
}

fn run(folder: &Path, arguments: &[&str]) -> Result<(), Failed> {
    let output = mdfsck(folder, arguments);
    ensure(output.status.success(), format!("{arguments:?}: {}", text(&output.stderr)))
}

fn json(output: &Output) -> Result<Vec<Value>, Failed> {
    Ok(text(&output.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// What a command prints, on both streams.
fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn has_all(text: &str, words: &[&str]) -> Result<(), Failed> {
    let missing = words.iter().find(|word| !text.contains(**word));
    ensure(missing.is_none(), format!("{missing:?} is missing in {text}"))
}

/// Bytes as encryption leaves them.
fn noise(length: usize) -> Vec<u8> {
    (0u32..).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).take(length).collect()
}

fn crashed(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "crash", "c", "--seed", "3", "--transactions", "200", "--open"])
}

fn page_that_recovery_needs(folder: &Path) -> Result<(), Failed> {
    crashed(folder)?;
    let path = folder.join("c/workload.mdf");
    let mut bytes = fs::read(&path)?;
    // The log changes this page, and does not format it anew.
    bytes[671 * PAGE_BYTES + 4000] ^= 0x55;
    fs::write(&path, bytes)?;
    let finding = |output: &Output| -> Result<Vec<Value>, Failed> {
        Ok(json(output)?.into_iter().filter(|line| line["kind"] == "finding" && line["page"] == 671).collect())
    };
    let with = mdfsck(folder, &["check", "c", "--format", "json"]);
    let without = mdfsck(folder, &["check", "c", "--no-log", "--format", "json"]);
    ensure(!finding(&with)?.is_empty() && finding(&with)? == finding(&without)?, said(&with) + &said(&without))?;
    ensure(with.status.code().is_some_and(|status| status & 1 == 1), said(&with))?;
    has_all(&said(&mdfsck(folder, &["check", "c"])), &["(1:671)", "3414"])
}

fn lost_log(folder: &Path) -> Result<(), Failed> {
    crashed(folder)?;
    fs::remove_file(folder.join("c/workload_log.ldf"))?;
    for command in [&["check", "c"][..], &["check", "c", "--format", "summary"], &["info", "c"], &["advise", "c"]] {
        let output = mdfsck(folder, command);
        let all = said(&output);
        has_all(&all, &["workload_log.ldf"])?;
        ensure(!all.contains("everything that was asked for was verified"), &all)?;
        ensure(command[0] == "info" || output.status.code() == Some(16), format!("{command:?}: {output:?}"))?;
    }
    Ok(())
}

fn log_without_header(folder: &Path) -> Result<(), Failed> {
    crashed(folder)?;
    let path = folder.join("c/workload_log.ldf");
    let mut bytes = fs::read(&path)?;
    bytes[..PAGE_BYTES].fill(0);
    fs::write(&path, bytes)?;
    let check = mdfsck(folder, &["check", "c"]);
    has_all(&said(&check), &["workload_log.ldf"])?;
    ensure(check.status.code() == Some(16), said(&check))?;
    has_all(&said(&mdfsck(folder, &["advise", "c"])), &["workload_log.ldf", "SET EMERGENCY", "mdfsck export c"])
}

/// Changes a byte in the newest VLF. The redo of a recovery starts before the changed block.
fn changed_log_block(folder: &Path) -> Result<(), Failed> {
    const BLOCK: usize = 779_776;
    crashed(folder)?;
    let path = folder.join("c/workload_log.ldf");
    let mut bytes = fs::read(&path)?;
    bytes[BLOCK + 10_224] ^= 0x10;
    fs::write(&path, bytes)?;
    let place = format!("byte {BLOCK} of its file 2: the block there was written completely, and has changed since");
    let check = mdfsck(folder, &["check", "c", "--format", "json"]);
    let lines = json(&check)?;
    let limit = lines.iter().find(|line| line["id"] == "recovery.log").ok_or_else(|| said(&check))?;
    let reason = limit["reason"].as_str().unwrap_or_default();
    has_all(reason, &[&place, "1 intact block follows"])?;
    ensure(check.status.code() == Some(16), said(&check))?;
    // Pages are newer than the readable part of the log because of the damage, not because the files are of two moments.
    for command in [&["check", "c"][..], &["advise", "c"]] {
        let words = said(&mdfsck(folder, command)).split_whitespace().collect::<Vec<_>>().join(" ");
        ensure(!words.contains("different points in time") && words.contains(&place), words)?;
    }
    has_all(
        &said(&mdfsck(folder, &["advise", "c"])),
        &["9003, 9004 or 824", "3414", "SET EMERGENCY", "mdfsck export c"],
    )?;
    let log = said(&mdfsck(folder, &["log", "c"]));
    has_all(&log, &["DAMAGED", "Log reuse wait  unknown", "before the damage", "1 more block of the log follows"])?;
    ensure(!log.contains("unfinished writes"), &log)
}

fn backup_without_beginning(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    run(folder, &["lab", "backup", "s", "-o", "plain", "--checksum"])?;
    run(folder, &["lab", "backup", "s", "-o", "packed", "--compressed"])?;
    let objects = |output: &Output| -> Result<Vec<Value>, Failed> {
        Ok(json(output)?.into_iter().filter(|line| line["kind"] == "object").collect())
    };
    let rows = super::first_pages::exported(folder, "s", "rows")?;
    fs::create_dir(folder.join("hurt"))?;
    for form in ["plain", "packed"] {
        let whole = format!("{form}/full.bak");
        let sound = fs::read(folder.join(&whole))?;
        let expected = objects(&mdfsck(folder, &["check", &whole, "--format", "json"]))?;
        ensure(expected.len() > 10, "objects")?;
        // The label of the file, the labels of the set too, and the first pages too.
        for (length, name) in [(512, "full.bak"), (4096, "full.bak.locked"), (1 << 16, "full.bak")] {
            let hurt = format!("hurt/{name}");
            fs::write(folder.join(&hurt), [&noise(length), &sound[length..]].concat())?;
            let check = mdfsck(folder, &["check", &hurt, "--format", "json"]);
            let mut found = json(&check)?.into_iter().filter(|line| line["kind"] == "finding").peekable();
            ensure(found.peek().is_some() && check.status.code().is_some_and(|status| status & 1 == 1), said(&check))?;
            let is_of_container = |line: Value| line["msg"] == 3241 || line["msg"] == 3189;
            ensure(found.all(is_of_container), said(&check))?;
            ensure(!said(&check).contains("was not given"), said(&check))?;
            ensure(length > 4096 || objects(&check)? == expected, format!("{form} {length}: {}", said(&check)))?;
            // The first records of a compressed backup have the pages of the catalog, so the names come from a copy.
            let copy: &[&str] = if length > 4096 { &["--like", "s"] } else { &[] };
            let left = super::first_pages::exported_with(folder, &hurt, &format!("{form}{length}"), copy)?;
            ensure(left == rows, format!("{form} {length}: not the same rows"))?;
        }
        let info = mdfsck(folder, &["info", "hurt/full.bak"]);
        has_all(&text(&info.stdout), &["media set    not known", "orders"])?;
    }
    // Another file with the name of a backup stays what it is.
    fs::write(folder.join("hurt/full.bak"), noise(1 << 21))?;
    refused(&mdfsck(folder, &["check", "hurt/full.bak"]), 4, &["full.bak", "is not a SQL Server data file", "a backup"])
}

fn encrypted_twice(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    run(folder, &["lab", "backup", "s", "-o", "b", "--checksum"])?;
    for (path, first) in [("s/orders.mdf", 8 * PAGE_BYTES), ("b/full.bak", 0)] {
        let mut bytes = fs::read(folder.join(path))?;
        for at in (first..bytes.len()).step_by(1 << 17) {
            let end = (at + 128).min(bytes.len());
            bytes[at..end].copy_from_slice(&noise(128)[..end - at]);
        }
        fs::write(folder.join(path), bytes)?;
    }
    let check = mdfsck(folder, &["check", "b/full.bak"]);
    ensure(check.status.code().is_some_and(|status| status & 1 == 1), said(&check))?;
    let lines = json(&mdfsck(folder, &["advise", "s", "--backups", "b", "--json"]))?;
    let actions: Vec<&str> = lines.iter().filter_map(|line| line["action"].as_str()).collect();
    ensure(!actions.is_empty() && !actions.iter().any(|action| action.starts_with("restore")), format!("{actions:?}"))?;
    let rejected = lines.iter().find(|line| line["kind"] == "rejected").ok_or("no rejected backup")?.to_string();
    has_all(&rejected, &["b/full.bak", "it is damaged", "mdfsck export FILE --damaged"])?;
    // The backup has other rows than the damaged file, in the pages that are damaged there.
    let [of_file, of_backup] = ["s", "b/full.bak"].map(|input| {
        let rows = super::first_pages::exported(folder, input, &format!("rows of {}", input.replace('/', " ")));
        rows.map(|tables| tables.values().map(Vec::len).sum::<usize>())
    });
    ensure(of_file? > 5000 && of_backup? > 5000, "rows")
}

fn appended_note(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    let before = mdfsck(folder, &["check", "s"]);
    let path = folder.join("s/orders.mdf");
    let bytes = [fs::read(&path)?, b"Your files are encrypted. ".repeat(33)[..836].to_vec()].concat();
    fs::write(&path, bytes)?;
    let after = mdfsck(folder, &["check", "s"]);
    ensure(after.status.code() == Some(0) && after.stdout == before.stdout, said(&after))?;
    let words = "has 836 bytes after its last page, which are not checked";
    has_all(&text(&after.stderr), &["orders.mdf", words])?;
    let lines = json(&mdfsck(folder, &["check", "s", "--format", "json"]))?;
    let is_told = |line: &Value| line["kind"] == "warning" && line["id"] == "file.tail-bytes";
    ensure(lines.iter().any(is_told), format!("{lines:?}"))?;
    let summary = text(&mdfsck(folder, &["check", "s", "--format", "summary"]).stdout);
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    has_all(&summary, &[words, "SOUND no errors"])
}

fn disk_images(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    let data = fs::read(folder.join("s/orders.mdf"))?;
    for (name, start) in [("d.vhdx", &b"vhdxfile"[..]), ("d.vhd", b"conectix")] {
        let image = [start, &vec![7; (1 << 20) - start.len()], &data].concat();
        fs::write(folder.join(name), image)?;
        let carve = format!("mdfsck check --carve {name}");
        refused(&mdfsck(folder, &["check", name]), 4, &["is a disk image", "mount the image read-only", &carve])?;
        let carved = mdfsck(folder, &["check", "--carve", name, "--format", "json"]);
        ensure(json(&carved)?.iter().all(|line| line["kind"] != "finding"), said(&carved))?;
        has_all(&text(&carved.stderr), &["pages of file 1"])?;
    }
    Ok(())
}

/// Writes a database with 64 pages of zeros to the folder `hurt`, and returns the text of the pattern.
fn with_zeros(folder: &Path) -> Result<String, Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    let mut bytes = fs::read(folder.join("s/orders.mdf"))?;
    bytes[832 * PAGE_BYTES..896 * PAGE_BYTES].fill(0);
    fs::create_dir(folder.join("hurt"))?;
    fs::write(folder.join("hurt/orders.mdf"), bytes)?;
    let lines = json(&mdfsck(folder, &["check", "hurt", "--format", "json"]))?;
    let pattern = lines.iter().find(|line| line["kind"] == "pattern").ok_or("no pattern")?;
    Ok(pattern["text"].as_str().unwrap_or_default().to_owned())
}

fn advice_with_patterns(folder: &Path) -> Result<(), Failed> {
    let pattern = with_zeros(folder)?;
    has_all(&pattern, &["(1:832) to (1:895)", "zeros", "thin disk"])?;
    let joined = |text: &str, margin: &str| {
        let lines = text.lines().map(|line| line.strip_prefix(margin).unwrap_or(line).trim());
        lines.collect::<Vec<_>>().join(" ")
    };
    let advice = mdfsck(folder, &["advise", "hurt", "--script", "plan.sql"]);
    has_all(&joined(&text(&advice.stdout), ""), &[&format!("Pattern: {pattern}")])?;
    has_all(&joined(&fs::read_to_string(folder.join("plan.sql"))?, "-- "), &[&format!("Pattern: {pattern}")])?;
    let lines = json(&mdfsck(folder, &["advise", "hurt", "--json"]))?;
    let first = lines.first().ok_or("no line")?;
    ensure(first["kind"] == "pattern" && first["text"] == pattern.as_str(), first.to_string())
}

fn patterns_on_the_map(folder: &Path) -> Result<(), Failed> {
    with_zeros(folder)?;
    run_any(folder, &["check", "hurt", "--html", "p.html"]);
    let data = super::html::data(&fs::read_to_string(folder.join("p.html"))?)?;
    let ranges = &data["map"]["files"][0]["patterns"];
    ensure(ranges[0][0] == 832 && ranges[0][1] == 64 && ranges[1].is_null(), ranges.to_string())?;
    has_all(&ranges[0][2].to_string(), &["pages (1:832) to (1:895), 64 pages", ": zeros"])
}

fn run_any(folder: &Path, arguments: &[&str]) {
    drop(mdfsck(folder, arguments));
}

fn unknown_compression(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "2MB"])?;
    run(folder, &["lab", "backup", "s", "-o", "b", "--compressed"])?;
    let path = folder.join("b/full.bak");
    let mut bytes = fs::read(&path)?;
    // The words after the magic bytes name the algorithm of the container.
    bytes[8..16].copy_from_slice(&[3, 0, 0, 0, 4, 0, 0, 0]);
    fs::write(&path, bytes)?;
    refused(
        &mdfsck(folder, &["check", "b/full.bak"]),
        4,
        &["is a compressed backup in an unknown form", "TDE", "ZSTD"],
    )?;
    has_all(&text(&mdfsck(folder, &["explain", "3241"]).stdout), &["TDE"])
}

fn benign_messages(folder: &Path) -> Result<(), Failed> {
    let explained = |number: &str| {
        let output = text(&mdfsck(folder, &["explain", number]).stdout);
        output.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    has_all(&explained("926"), &["snapshot of DBCC", "ONLINE"])?;
    has_all(&explained("8921"), &["snapshot"])?;
    has_all(&explained("8957"), &["cut off"])?;
    has_all(&explained("17053"), &["snapshot"])
}

fn failed_log_write(folder: &Path) -> Result<(), Failed> {
    const LOG: &str = "\
2020-11-02 09:12:11.31 spid16s     Error: 9001, Severity: 21, State: 5.
2020-11-02 09:12:11.31 spid16s     The log for database 'master' is not available. Check the operating system error log for related error messages. Resolve any errors and restart the database.
2020-11-02 09:12:11.30 spid16s     Error: 17053, Severity: 16, State: 1.
2020-11-02 09:12:11.30 spid16s     LogWriter: Operating system error 1117(The request could not be performed because of an I/O device error.) encountered.
";
    let output = explain(folder, &["-"], LOG.as_bytes())?;
    let mut rest = text(&output.stdout);
    for part in ["causes first", "17053", "9001", "Msg 17053", "Msg 9001", "What to do next"] {
        rest =
            rest.split_once(part).ok_or(format!("{part} is not in its place: {}", text(&output.stdout)))?.1.to_owned();
    }
    has_all(&text(&output.stdout), &["1117"])
}

fn user_without_name(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "2MB"])?;
    for value in [None, Some("")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdfsck"));
        command.args(["check", "s", "--errorlog-line", "-"]).current_dir(folder);
        for name in ["USER", "USERNAME", "LOGNAME"] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let line = text(&command.output()?.stderr);
        let (_, rest) = line.split_once("executed by ").ok_or_else(|| line.clone())?;
        let (name, _) = rest.split_once(" found ").ok_or_else(|| line.clone())?;
        ensure(!name.is_empty() && !name.ends_with('\\') && !name.contains(' '), line.clone())?;
    }
    Ok(())
}

fn help_on_incomplete_comparisons(folder: &Path) -> Result<(), Failed> {
    let help = text(&mdfsck(folder, &["compare-dbcc", "--help"]).stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    has_all(&help, &["16 incomplete: the results of CHECKDB are cut off", "in a language other than English"])
}

fn same_advice(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    let mut bytes = fs::read(folder.join("s/orders.mdf"))?;
    // The GAM says that the extent of page 832 is free.
    let map = &mut bytes[2 * PAGE_BYTES..3 * PAGE_BYTES];
    map[194 + 832 / 64] ^= 1 << (832 / 8 % 8);
    let sum = checksum((&*map).try_into()?);
    map[60..64].copy_from_slice(&sum.to_le_bytes());
    fs::create_dir(folder.join("hurt"))?;
    fs::write(folder.join("hurt/orders.mdf"), bytes)?;
    has_all(&text(&mdfsck(folder, &["check", "hurt"]).stdout), &["Msg 8904"])?;
    let joined = |output: Output| text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = joined(mdfsck(folder, &["advise", "hurt"]));
    has_all(&advice, &["Stop all writes, and save the rows of dbo.documents", "SET READ_ONLY"])?;
    ensure(!advice.contains("without an owner"), &advice)?;
    has_all(&joined(mdfsck(folder, &["explain", "8904"])), &["Stop all writes, and save the rows of both owners"])?;
    // Nothing refers to the IAM page of message 2576 with page (0:0), so no table needs it.
    let orphan = joined(mdfsck(folder, &["explain", "2576"]));
    has_all(&orphan, &["If the message names (0:0)", "no table needs the pages", "let REPAIR_ALLOW_DATA_LOSS remove"])
}

fn minus_zero(folder: &Path) -> Result<(), Failed> {
    run(folder, &["lab", "new", "s", "--size", "9MB"])?;
    let mut bytes = fs::read(folder.join("s/orders.mdf"))?;
    // The price of product 1 is 6863.79: its sign, and its digits. It is in the table and in an index.
    let price = [&[1][..], &686_379u32.to_le_bytes()].concat();
    let places: Vec<usize> = (0..bytes.len() - price.len()).filter(|&at| bytes[at..].starts_with(&price)).collect();
    ensure(places.len() == 2, format!("{places:?}"))?;
    for at in places {
        bytes[at..at + price.len()].fill(0);
        let page = &mut bytes[at / PAGE_BYTES * PAGE_BYTES..][..PAGE_BYTES];
        let sum = checksum((&*page).try_into()?);
        page[60..64].copy_from_slice(&sum.to_le_bytes());
    }
    fs::create_dir(folder.join("hurt"))?;
    fs::write(folder.join("hurt/orders.mdf"), bytes)?;
    has_all(&text(&mdfsck(folder, &["check", "hurt"]).stdout), &["Msg 2570", "\"price\""])?;
    let advice = text(&mdfsck(folder, &["advise", "hurt"]).stdout);
    // The table is a heap. The row of the index is a copy, which an UPDATE of the table corrects too.
    let title = "Correct 1 row of dbo.products: invalid values in price";
    let update = "-- UPDATE [dbo].[products] SET [price] = /* the right value */ WHERE %%physloc%% =";
    has_all(&advice, &[title, "SELECT * FROM [dbo].[products] WHERE %%physloc%% =", update, "/* (1:624:0) */;"])?;
    has_all(&advice, &["ALTER INDEX [ix_products_price] ON [dbo].[products] REBUILD;"])
}
