//! `mdfsck check --html`: an HTML page with the report of a check.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
#[cfg(unix)]
use libtest_mimic::Trial;
use serde_json::Value;

#[cfg(unix)]
use super::browser::{Browser, Session};
#[cfg(unix)]
use super::needs;
use super::{Test, ensure, mdfsck, refused, text};

pub(crate) fn with_pages() -> Vec<(&'static str, Test)> {
    vec![
        ("check --html writes a page beside the results, which stay as they are", beside_results),
        ("check --html refuses a page that has no file of its own, and several databases", refusals),
        ("a page and a terminal name the same commands to run next", same_commands),
        ("a page that cannot be written leaves the results, and sets bit 4", unwritable),
    ]
}

/// Tests that need a browser.
#[cfg(unix)]
pub(crate) fn in_a_browser() -> Vec<Trial> {
    let name = "the page of a check shows its damage, loads nothing, and fits 400 pixels and a dark screen";
    vec![needs(&[("chromium", Browser::find().is_some())], name, on_screens)]
}

/// Writes a damaged database to the folder `hurt`.
pub(super) fn sample(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "sound", "--size", "9MB"]).status.success(), "lab new")?;
    let damage = ["lab", "damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3"];
    ensure(mdfsck(folder, &damage).status.success(), "lab damage")
}

pub(super) fn data(page: &str) -> Result<Value, Failed> {
    let (_, rest) = page.split_once(" id=data>").ok_or("no data")?;
    Ok(serde_json::from_str(rest.split_once("</script>").ok_or("no end")?.0)?)
}

fn beside_results(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    let plain = mdfsck(folder, &["check", "hurt"]);
    fs::write(folder.join("p.html"), "of another night")?;
    let output = mdfsck(folder, &["check", "--html", "p.html", "hurt"]);
    ensure(output.status.code() == plain.status.code() && output.stdout == plain.stdout, text(&output.stdout))?;
    ensure(output.stderr == plain.stderr, text(&output.stderr))?;
    let page = fs::read_to_string(folder.join("p.html"))?;
    let data = data(&page)?;
    ensure(data["head"]["tone"] == "bad" && data["head"]["name"] == "orders", &page)?;
    ensure(data["findings"]["count"].as_u64() > Some(0), "findings")?;
    let first = &data["findings"]["places"][0]["messages"][0]["shown"][0];
    ensure(first["bytes"]["hex"].as_str().is_some_and(|hex| hex.len() == 128), first.to_string())?;
    let file = &data["map"]["files"][0];
    ensure(file["id"] == 1 && file["pages"].as_u64() > Some(1000), file.to_string())?;
    let tables = data["map"]["tables"].to_string();
    ensure(tables.contains("order_lines"), tables)?;
    let commands = data["commands"].to_string();
    ensure(commands.contains("mdfsck advise hurt") && !commands.contains("--html"), commands)?;
    // No temporary file may remain.
    let names: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    ensure(!names.iter().any(|name| name.contains("partial")), format!("{names:?}"))
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    refused(&mdfsck(folder, &["check", "--html", "-", "hurt"]), 8, &["--html", "give a file"])?;
    for option in ["--output", "--errorlog-line", "--history"] {
        let output = mdfsck(folder, &["check", "--html", "p.html", option, "./p.html", "hurt"]);
        refused(&output, 8, &["--html", &format!("the file of {option}")])?;
    }
    #[cfg(unix)]
    {
        refused(&mdfsck(folder, &["check", "--html", "/dev/stdout", "hurt"]), 8, &["--html", "give a file"])?;
        std::os::unix::fs::symlink("out.txt", folder.join("link.html"))?;
        let output = mdfsck(folder, &["check", "--html", "link.html", "--output", "out.txt", "hurt"]);
        refused(&output, 8, &["--html", "the file of --output"])?;
        ensure(!folder.join("out.txt").exists(), "no results")?;
    }
    let windowed = ["check", "--html", "p.html", "--history", "h.db", "--window", "1h", "hurt"];
    refused(&mdfsck(folder, &windowed), 8, &["--html", "--window"])?;
    let before = fs::read(folder.join("hurt/orders.mdf"))?;
    refused(&mdfsck(folder, &["check", "--html", "hurt/orders.mdf", "hurt"]), 8, &["--html", "is one of the files"])?;
    refused(&mdfsck(folder, &["check", "--html", "sound/orders.mdf", "hurt"]), 8, &["will not be overwritten"])?;
    ensure(fs::read(folder.join("hurt/orders.mdf"))? == before, "untouched")?;
    refused(&mdfsck(folder, &["check", "--html", "no/p.html", "hurt"]), 4, &["no/p.html", "cannot be written"])?;
    let output = mdfsck(folder, &["check", "--html", "p.html", "sound", "hurt"]);
    refused(&output, 8, &["--html p.html", "one database", "2 would be checked"])?;
    ensure(!folder.join("p.html").exists(), "no page")
}

fn unwritable(folder: &Path) -> Result<(), Failed> {
    if !Path::new("/dev/full").exists() {
        return Ok(());
    }
    sample(folder)?;
    let plain = mdfsck(folder, &["check", "hurt"]);
    let output = mdfsck(folder, &["check", "--html", "/dev/full", "hurt"]);
    ensure(output.stdout == plain.stdout, text(&output.stdout))?;
    ensure(output.status.code() == plain.status.code().map(|status| status | 4), format!("{:?}", output.status))?;
    ensure(text(&output.stderr).contains("/dev/full: cannot be written"), text(&output.stderr))
}

/// Each kind of damage needs a different first command. The page must show the same commands as the summary.
fn same_commands(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "sound", "--size", "9MB"]).status.success(), "lab new")?;
    for kind in ["bit-rot", "key-order", "lost-extent"] {
        let damage = ["lab", "damage", "sound", "-o", kind, "--kind", kind];
        ensure(mdfsck(folder, &damage).status.success(), format!("lab damage {kind}"))?;
        let output = mdfsck(folder, &["check", "--format", "summary", "--html", "p.html", kind]);
        let summary = text(&output.stdout);
        let named = summary.lines().filter_map(|line| line.strip_prefix("  mdfsck "));
        let named: Vec<&str> = named.map(|line| line.split("  ").next().unwrap_or(line)).collect();
        let data = data(&fs::read_to_string(folder.join("p.html"))?)?;
        let shown: Vec<&str> = data["commands"]
            .as_array()
            .ok_or("no commands")?
            .iter()
            .filter_map(|one| one["command"].as_str())
            .collect();
        let shown: Vec<&str> = shown.iter().filter_map(|command| command.strip_prefix("mdfsck ")).collect();
        // The page may contain one more command than the summary: the command that explains something that was not
        // verified.
        ensure(
            named.len() > 3 && shown.starts_with(&named) && shown.len() <= named.len() + 1,
            format!("{named:?} {shown:?}"),
        )?;
        ensure(named[0].starts_with("explain "), format!("{named:?}"))?;
    }
    Ok(())
}

#[cfg(unix)]
fn on_screens(folder: &Path) -> Result<(), Failed> {
    let browser = Browser::find().ok_or("no browser")?;
    sample(folder)?;
    // The file name contains HTML markup. The page must show the markup as text.
    let name = "hurt/<img src=x onerror=document.title=1>.mdf";
    fs::rename(folder.join("hurt/orders.mdf"), folder.join(name))?;
    mdfsck(folder, &["check", "--html", "p.html", name]);
    let page = fs::read_to_string(folder.join("p.html"))?;
    ensure(!page.contains("<img"), "markup")?;
    let asked = |[red, green, blue]: [u8; 3]| {
        format!(
            "(()=>{{const page=document,canvas=page.querySelector('canvas'),{{data}}=canvas.getContext('2d').getImageData(0,0,canvas.width,\
             canvas.height);let seen=0;for(let at=0;at<data.length;at+=4)seen+=data[at]==={red}&&data[at+1]==={green}&&\
             data[at+2]==={blue};return[page.documentElement.scrollWidth,seen,page.images.length,\
             page.defaultView.performance.getEntriesByType('resource').length,page.title,\
             page.querySelectorAll('#places details').length,page.querySelector('.legend').textContent.includes('findings')]}})()"
        )
    };
    let url = format!("file://{}", folder.join("p.html").display());
    let mut session = Session::open(&browser, folder)?;
    let mut grounds = Vec::new();
    for (width, is_dark, hurt) in
        [(400, false, [0xd4, 0x21, 0x0f]), (400, true, [0xff, 0x5a, 0x45]), (1100, false, [0xd4, 0x21, 0x0f])]
    {
        session.show(&url, (width, is_dark))?;
        session.value(
            "document.documentElement.dataset.ready && document.querySelector('.legend').children.length || null",
        )?;
        let seen = session.value(&asked(hurt))?;
        ensure(session.complaints.is_empty(), format!("{:?}", session.complaints))?;
        ensure(seen[0].as_u64() <= Some(width.into()), format!("{} pixels wide", seen[0]))?;
        // A mark in the map must have at least 6 by 6 pixels.
        ensure(seen[1].as_u64() >= Some(36), format!("{} pixels of damage", seen[1]))?;
        ensure(seen[2] == 0 && seen[3] == 0 && seen[6] == true, seen.to_string())?;
        ensure(seen[4] == "orders: not sound" && seen[5].as_u64() > Some(0), seen.to_string())?;
        grounds.push(session.value("getComputedStyle(document.body).backgroundColor")?);
    }
    ensure(grounds[0] != grounds[1], "no dark mode")
}
