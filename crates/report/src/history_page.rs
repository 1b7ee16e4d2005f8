//! A history as HTML pages. There are three kinds of pages. The page of the estate lists all databases, the worst
//! first. The page of a database shows when its pages were last read, its findings and its runs. The third kind shows
//! one run.
//!
//! The result is either one file that loads nothing and sends nothing, with as many databases as fit, or separate pages
//! for a web server, which sends the style sheet and the script separately. Text from a history goes into a page as
//! JSON, and the script shows it only as text.

mod details;
mod estate;
mod findings;
mod live;
mod ranges;
mod run;

use history::progress::Which;
use history::query::Filter;
use history::{History, Result};
use serde::Serialize;

use crate::html::{ELEMENTS, Escaped, MAP, escape, head_of_script, head_of_served, shown_to, style_of_served};
use details::{Details, Limits};
use estate::Estate;
use live::Running;

/// Pages of a history.
pub struct HistoryPages<'a> {
    /// The history that the pages show.
    pub history: &'a History,
    /// Name of the history's file.
    pub file: &'a str,
    /// Version of the program.
    pub version: &'a str,
    /// The time at which the page is made, in UTC and in the format of the history's times.
    pub now: &'a str,
    /// The name of this machine. Only if a check runs on this machine can the program find out whether the process of
    /// the check still exists.
    pub host: &'a str,
}

/// The head of a page: the history file, the program version, the time of the page, and whether a user can follow links
/// and acknowledge findings.
#[derive(Serialize)]
struct Head<'a> {
    file: String,
    version: &'a str,
    now: &'a str,
    /// Whether a server sends the page. If so, links open other pages.
    is_live: bool,
    /// Whether findings can be acknowledged.
    can_acknowledge: bool,
}

/// A database with its running checks.
#[derive(Serialize)]
struct WithRunning {
    #[serde(flatten)]
    details: Details,
    running: Vec<Running>,
}

/// Maximum size of a page in bytes.
const MOST_BYTES: usize = 8_000_000;
/// Maximum number of running checks of one database that are shown.
const MOST_RUNNING: u32 = 3;
/// Maximum total size, in bytes, of the rows on the page that lists all databases (the estate).
const ROW_BYTES: usize = 3_000_000;
/// Number of bytes reserved for the end of a page.
const END_BYTES: usize = 100_000;
/// The name under which a server sends the style sheet of its pages.
const STYLE_NAME: &str = "/style.css";
const SCRIPT_NAME: &str = "/script.js";
/// The HTML elements that the script fills.
const BODY: &str = include_str!("history_page/page.html");
const CSS: &str = include_str!("history_page/page.css");

/// The style sheet that a server's pages link to.
pub fn style() -> String {
    style_of_served(CSS)
}

/// The script that a server's pages link to.
pub fn script() -> String {
    scripts().concat()
}

fn scripts() -> [&'static str; 5] {
    let own = [
        include_str!("history_page/database.js"),
        include_str!("history_page/live.js"),
        include_str!("history_page/page.js"),
    ];
    [ELEMENTS, MAP, own[0], own[1], own[2]]
}

impl HistoryPages<'_> {
    /// The history as one file. If `filter` selects one database, the file has the details of this database. Otherwise
    /// the file has the list of all databases (the estate), and the details of as many databases as fit, the worst
    /// first.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn file(&self, filter: &Filter) -> Result<Vec<u8>> {
        self.history.at_one_moment(|| {
            let mut out = format!("{}{BODY}<script type=application/json id=data>", head_of_script(CSS)).into_bytes();
            let scripts = format!("</script>\n<script>{}</script>\n", scripts().concat());
            let (rows, states) = estate::rows(self.history, filter, ROW_BYTES)?;
            let limits = if rows.len() == 1 { &Limits::ONE } else { &Limits::MANY };
            let (rows, known): (Vec<_>, Vec<_>) = rows
                .into_iter()
                .map(|(row, state)| {
                    let known = (row.id, state);
                    (row, known)
                })
                .unzip();
            push(&mut out, "{\"head\":", &self.head(false, false));
            push(&mut out, ",\"estate\":", &Estate::new((self.history, self.host), rows, states)?);
            out.extend_from_slice(b",\"databases\":{");
            let room = MOST_BYTES - END_BYTES - scripts.len();
            let mut left_out = 0_u64;
            let mut separator = "";
            for (id, state) in known {
                let mut one = Vec::new();
                if left_out == 0
                    && let Some(details) = details::details(self.history, (id, Some(state)), limits)?
                {
                    push(&mut one, &format!("{separator}\"{id}\":"), &details);
                }
                // The worst databases come first. After the first database that does not fit, no more are added.
                if one.is_empty() || out.len() + one.len() > room {
                    left_out += 1;
                    continue;
                }
                out.extend_from_slice(&one);
                separator = ",";
            }
            push(&mut out, "},\"left_out\":", &left_out);
            out.extend_from_slice(b"}");
            out.extend_from_slice(scripts.as_bytes());
            Ok(out)
        })
    }

    /// The page that lists all databases (the estate), for a server.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn estate(&self) -> Result<Vec<u8>> {
        self.history.at_one_moment(|| {
            let (rows, states) = estate::rows(self.history, &Filter::default(), ROW_BYTES)?;
            let rows = rows.into_iter().map(|(row, _)| row).collect();
            Ok(self.served("estate", &Estate::new((self.history, self.host), rows, states)?, "", false))
        })
    }

    /// The page of a database, for a server; `None` if no database has this number.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn database(&self, id: i64, can_acknowledge: bool) -> Result<Option<Vec<u8>>> {
        self.history.at_one_moment(|| {
            let Some(details) = details::details(self.history, (id, None), &Limits::ONE)? else { return Ok(None) };
            let which = Which::Database(details.identity());
            let (running, curves) = live::checks(self.history, which, (self.host, MOST_RUNNING))?;
            let model = WithRunning { details, running };
            Ok(Some(self.served("database", &model, &curves, can_acknowledge)))
        })
    }

    /// The page of a run, for a server; `None` if no run has this number.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn run(&self, id: i64) -> Result<Option<Vec<u8>>> {
        self.history.at_one_moment(|| {
            let run = run::of_number(self.history, id)?;
            Ok(run.map(|run| self.served("run", &run, "", false)))
        })
    }

    /// The page of a running check, for a server; `None` if no check has this number.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn running(&self, id: i64) -> Result<Option<Vec<u8>>> {
        self.history.at_one_moment(|| {
            let (running, curves) = live::checks(self.history, Which::Number(id), (self.host, 1))?;
            Ok(running.first().map(|running| self.served("running", running, &curves, false)))
        })
    }

    fn head(&self, is_live: bool, can_acknowledge: bool) -> Head<'_> {
        Head { file: shown_to(self.file, 200), version: self.version, now: self.now, is_live, can_acknowledge }
    }

    /// A page that a server sends. `charts` has the HTML of the charts, which the script moves to their places on the
    /// page.
    fn served(&self, name: &str, model: &impl Serialize, charts: &str, can_acknowledge: bool) -> Vec<u8> {
        let start = head_of_served("mdfsck", STYLE_NAME, Some(SCRIPT_NAME));
        let mut out = format!("{start}{BODY}{charts}<script type=application/json id=data>").into_bytes();
        push(&mut out, "{\"head\":", &self.head(true, can_acknowledge));
        push(&mut out, &format!(",\"{name}\":"), model);
        out.extend_from_slice(b"}</script>\n");
        out
    }
}

/// A page with plain text that a server sends. The text is a dump of a database page, or an error.
pub fn plain(title: &str, back: &str, about: &[&str], text: &str) -> Vec<u8> {
    const LINE_CHARS: usize = 4000;
    let line = |text: &str| escape(&shown_to(text, LINE_CHARS));
    let mut html = format!(
        "{}<header><p id=kicker><a href='{}'>back</a></p><h1 dir=auto>{}</h1></header><main>",
        head_of_served(&shown_to(title, LINE_CHARS), STYLE_NAME, None),
        escape(back),
        line(title)
    );
    for about in about {
        html.push_str(&format!("<p dir=auto>{}</p>", line(about)));
    }
    if !text.is_empty() {
        let lines: Vec<String> = text.lines().map(line).collect();
        html.push_str(&format!("<pre class=printed tabindex=0>{}</pre>", lines.join("\n")));
    }
    html.push_str("</main>\n");
    html.into_bytes()
}

/// Appends `before`, then `value` as JSON.
fn push(out: &mut Vec<u8>, before: &str, value: &impl Serialize) {
    out.extend_from_slice(before.as_bytes());
    let start = out.len();
    // Numbers and strings are written to memory, which cannot fail.
    if serde_json::to_writer(Escaped(out), value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// A time of the history in the format that pages show.
fn date(text: &str) -> String {
    shown_to(text, 20)
}

#[cfg(test)]
mod tests;
