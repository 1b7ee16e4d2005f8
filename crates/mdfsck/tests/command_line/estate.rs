//! `mdfsck history FILE html`: one page that shows all databases.

use rusqlite::Connection;
use serde_json::Value;

#[cfg(unix)]
use super::browser::Browser;
use super::html::{data, sample};
use super::*;

/// A very long name with markup and with a character that reverses the direction of text.
pub(super) fn hostile_name() -> String {
    format!("</script><img src=x onerror=document.title=1>\u{202e}{}", "<é".repeat(2000))
}

pub(super) fn with_estates() -> Vec<(&'static str, Test)> {
    vec![
        ("history html writes all databases as one page, the corrupt ones first", worst_first),
        ("history html refuses a page that has no file of its own", refusals),
        ("the page of an estate has 8 MB at most, and says what it leaves out", bounded),
    ]
}

/// Tests that need a browser.
#[cfg(unix)]
pub(super) fn in_a_browser() -> Vec<Trial> {
    let name = "the page of an estate shows each database, loads nothing, and fits 400 pixels and a dark screen";
    vec![needs(&[("chromium", Browser::find().is_some())], name, on_screens)]
}

/// Makes a history `h.db` with two databases: a sound database, and a damaged database in the folder `hurt`. After the
/// damaged database, a sound copy of it was checked.
pub(super) fn history(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    ensure(mdfsck(folder, &["lab", "new", "other", "--size", "9MB", "--seed", "8"]).status.success(), "lab new")?;
    for name in ["other", "hurt", "sound"] {
        let output = mdfsck(folder, &["check", name, "--history", "h.db"]);
        ensure(output.status.code().is_some_and(|status| status & 12 == 0), text(&output.stderr))?;
    }
    Ok(())
}

/// Changes a history by SQL statements, in ways in which a check would never change it.
pub(super) fn change(folder: &Path, statements: &str) -> Result<(), Failed> {
    Ok(Connection::open(folder.join("h.db"))?.execute_batch(statements)?)
}

fn page(folder: &Path, options: &[&str]) -> Result<(String, Value), Failed> {
    let output = mdfsck(folder, &[&["history", "h.db", "html", "-o", "e.html"], options].concat());
    ensure(output.status.success() && output.stdout.is_empty(), text(&output.stderr))?;
    let page = fs::read_to_string(folder.join("e.html"))?;
    let data = data(&page)?;
    Ok((page, data))
}

fn worst_first(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let (page, all) = page(folder, &[])?;
    ensure(page.contains("default-src 'none'") && !page.contains("http://"), "policy")?;
    let rows = all["estate"]["rows"].as_array().ok_or("no rows")?;
    let states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap_or_default()).collect();
    // The later check of the sound copy does not change the state of the damaged database.
    ensure(states == ["corrupt", "sound"], format!("{states:?}"))?;
    ensure(
        all["estate"]["corrupt"] == 1 && all["estate"]["sound"] == 1 && all["left_out"] == 0,
        all["estate"].to_string(),
    )?;
    // The row shows the path at which the damage was first seen, and says that there is another copy.
    let path = rows[0]["path"].as_str().ok_or("no path")?;
    ensure(
        path.ends_with("orders.mdf") && rows[0]["more_places"] == 1 && rows[1]["more_places"] == 0,
        rows[0].to_string(),
    )?;
    ensure(rows[0]["server"].as_str().is_some_and(|server| !server.is_empty()), rows[0].to_string())?;
    let id = rows[0]["id"].to_string();
    let hurt = &all["databases"][&id];
    ensure(rows[0]["new"].as_u64() == hurt["findings"]["count"].as_u64(), rows[0].to_string())?;
    let first = &hurt["findings"]["shown"][0];
    ensure(first["life"] == "new" && first["first_seen"] == first["last_seen"], first.to_string())?;
    let check = first["check"].as_u64().ok_or("no check")? as usize;
    ensure(hurt["findings"]["checks"][check]["number"] == first["number"], first.to_string())?;
    let pages: u64 =
        hurt["files"][0]["ranges"].as_array().ok_or("no ranges")?.iter().filter_map(|range| range[0].as_u64()).sum();
    ensure(hurt["files"][0]["pages"] == pages && pages > 1000, hurt["files"].to_string())?;
    ensure(hurt["runs"].as_array().is_some_and(|runs| runs.len() == 2), hurt["runs"].to_string())?;
    // The path is absolute, even if the check was given a relative path.
    let paths = hurt["runs"][0]["paths"].as_str().ok_or("no paths")?;
    ensure(Path::new(paths).is_absolute() && paths.ends_with("orders.mdf"), paths)?;
    let family = rows[0]["family"].as_str().ok_or("no family")?.to_owned();
    let (_, one) = self::page(folder, &["--database", &family])?;
    ensure(one["estate"]["rows"].as_array().is_some_and(|rows| rows.len() == 1), one["estate"].to_string())?;
    ensure(one["databases"][&id]["row"]["state"] == "corrupt", "the one asked for")
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let before = fs::read(folder.join("h.db"))?;
    let html = |options: &[&str]| mdfsck(folder, &[&["history", "h.db", "html"], options].concat());
    refused(&html(&["-o", "-"]), 8, &["--output", "give a file"])?;
    refused(&html(&["-o", "./h.db"]), 8, &["is the history"])?;
    refused(&html(&["-o", "hurt/orders.mdf"]), 8, &["will not be overwritten"])?;
    refused(&html(&["-o", "no/e.html"]), 4, &["no/e.html", "cannot be written"])?;
    refused(&html(&["-o", "e.html", "--database", "nothing"]), 8, &["no database 'nothing'"])?;
    ensure(html(&["-o", "e.html", "--json"]).status.code() == Some(8), "--json")?;
    ensure(!folder.join("e.html").exists() && fs::read(folder.join("h.db"))? == before, "nothing is changed")
}

fn bounded(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    // Adds 4,000 databases with very long names, and one database with 50,000 findings and 60,000 ranges.
    let name = hostile_name().replace('\'', "''");
    change(
        folder,
        &format!(
            "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
             INSERT INTO database SELECT i, i, '{name}' || i, '2026-01-01T00:00:00Z', i, '' FROM n;
             INSERT INTO source SELECT id, id, 'files', '{name}', '{name}' FROM database WHERE id >= 1000;
             INSERT INTO image SELECT id, id, '', NULL, '2026-01-01T00:00:00Z', NULL FROM source WHERE id >= 1000;
             INSERT INTO run SELECT 1000 + i.id, i.id, i.id, r.started, r.ended, '{name}', r.version, r.command, r.options, '{name}',
                 r.exit_status, r.complete, NULL, r.findings, 0, 0, 0, 0, 7, 100, 100, 100, 1, 1.0, NULL, NULL, 0
                 FROM image i, run r WHERE i.id >= 1000 AND r.id = 2;
             INSERT INTO not_verified SELECT id, 'columns.unknown', '{name}', '{name}' || id, '{name}', 1 FROM run WHERE id >= 2000;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
             INSERT INTO finding SELECT 100000 + i, 1000, i, 'tree.child-unseen', 8976, 1, 'consistency', 5, 1, '{name}' || i % 7, 1, i * 3, NULL,
                 '{name}', 'new', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 1, '{{}}', 2000,
                 1000, NULL, NULL, NULL, NULL FROM n;
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
             INSERT INTO coverage SELECT 1000, 1, i * 8, 'full', 8, 8, '2026-0' || (1 + i % 9) || '-01T00:00:00Z', 1000, 'read', NULL FROM n;"
        ),
    )?;
    let (page, all) = self::page(folder, &[])?;
    ensure(page.len() <= 8_000_000, format!("{} bytes", page.len()))?;
    ensure(!page.contains("<img") && !page.contains('\u{202e}'), "markup")?;
    ensure(page.matches("</script>").count() == page.matches("<script").count(), "an end of a script")?;
    let shown = all["estate"]["rows"].as_array().map_or(0, |rows| rows.len() as u64);
    ensure(shown + all["estate"]["more"].as_u64().unwrap_or(0) == 4002, format!("{shown} rows"))?;
    let detailed = all["databases"].as_object().map_or(0, |databases| databases.len() as u64);
    ensure(detailed > 1 && detailed + all["left_out"].as_u64().unwrap_or(0) == shown, format!("{detailed} detailed"))?;
    // The database with the most new findings comes first.
    let first = all["estate"]["rows"][0]["id"].to_string();
    ensure(first == "1000" && all["databases"][&first]["findings"]["count"] == 50_000, first.clone())?;
    let ranges = all["databases"][&first]["files"][0]["ranges"].as_array().ok_or("no ranges")?;
    let pages: u64 = ranges.iter().filter_map(|range| range[0].as_u64()).sum();
    ensure(ranges.len() <= 2000 && pages == 480_000, format!("{} ranges", ranges.len()))
}

#[cfg(unix)]
fn on_screens(folder: &Path) -> Result<(), Failed> {
    use super::browser::Session;
    let browser = Browser::find().ok_or("no browser")?;
    history(folder)?;
    change(folder, &format!("UPDATE database SET name = '{}' WHERE id = 2", hostile_name()))?;
    page(folder, &[])?;
    let url = format!("file://{}", folder.join("e.html").display());
    let marked = |[red, green, blue]: [u8; 3]| {
        format!(
            "(()=>{{const canvas=document.querySelector('canvas'),{{data}}=canvas.getContext('2d').getImageData(0,0,canvas.width,\
             canvas.height);let seen=0;for(let at=0;at<data.length;at+=4)seen+=data[at]==={red}&&data[at+1]==={green}&&\
             data[at+2]==={blue};return seen}})()"
        )
    };
    let mut session = Session::open(&browser, folder)?;
    let mut grounds = Vec::new();
    for (width, is_dark, hurt) in
        [(400, false, [0xd4, 0x21, 0x0f]), (400, true, [0xff, 0x5a, 0x45]), (1100, false, [0xd4, 0x21, 0x0f])]
    {
        session.show(&url, (width, is_dark))?;
        session.value("document.documentElement.dataset.ready ?? null")?;
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        ensure(session.value(fits)? == true, "the estate is too wide")?;
        session.value("document.querySelector('#estate a').click(), true")?;
        session.value("document.querySelector('.legend')?.children.length || null")?;
        ensure(session.value(fits)? == true, "the database is too wide")?;
        // A mark in the map must have at least 6 by 6 pixels.
        let seen = session.value(&marked(hurt))?;
        ensure(seen.as_u64() >= Some(36), format!("{seen} pixels of damage"))?;
        session.value("document.querySelectorAll('section > details > summary').forEach(one => one.parentElement.open || one.click()), true")?;
        session.value("document.querySelector('.body summary') && true")?;
        session.value(
            "document.querySelectorAll('.body summary').forEach(one => one.parentElement.open || one.click()), true",
        )?;
        session.value("document.querySelector('.finding') && true")?;
        ensure(
            session.value("document.title.startsWith('</script>') && document.images.length === 0")? == true,
            "markup",
        )?;
        ensure(session.value("performance.getEntriesByType('resource').length")? == 0, "something was loaded")?;
        session.value("document.querySelector('#kicker a').click(), true")?;
        session.value("document.getElementById('filter') && true")?;
        grounds.push(session.value("getComputedStyle(document.body).backgroundColor")?);
        ensure(session.complaints.is_empty(), format!("{:?}", session.complaints))?;
    }
    ensure(grounds[0] != grounds[1], "no dark mode")
}
