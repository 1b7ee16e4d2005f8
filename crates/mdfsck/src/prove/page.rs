//! The HTML page of a run: one file that needs nothing from the network.

use std::fmt::Write;

use report::html::{escape, head, table, with_contents};

use super::listing::Listing;
use super::report::{COLUMNS, Case, OfKind, Run, Verdict};

/// The largest number of lines of a listing to show.
const MOST_LINES: usize = 50;

pub(super) fn page(run: &Run) -> String {
    let mut html = cards(run);
    html.push_str(
        "<h2>What was compared</h2><p>Each copy of the database was damaged in a known way. SQL Server's DBCC CHECKDB and \
         mdfsck checked the same bytes. Their results are compared as sets of message, object, index, page and slot.</p>",
    );
    html.push_str("<h2>By kind of damage</h2>");
    html.push_str(&table(COLUMNS, run.kinds().iter().map(OfKind::cells)));
    html.push_str("<h2>The sound copy</h2>");
    if run.listings.is_empty() {
        html.push_str("<p>CHECKALLOC and CHECKCATALOG were not run on it.</p>");
    }
    for (command, listing) in &run.listings {
        match listing {
            Ok(listing) => html.push_str(&of_listing(command, listing)),
            Err(reason) => {
                let _ = write!(html, "<h3>{command}</h3><p>No result to compare: {}", escape(reason));
            }
        }
    }
    html.push_str("<h2>Every copy</h2>");
    html.push_str(
        "<p>The folder of a copy has both outputs and the comparison, and the damaged files if there is a difference.</p>",
    );
    html.push_str(&cases(&run.cases));
    head("mdfsck and DBCC CHECKDB") + &with_contents(&html) + "\n"
}

fn cards(run: &Run) -> String {
    let mut html = format!("<p>SQL Server {}</p><div class=cards>", escape(&run.server));
    for verdict in [Verdict::Agree, Verdict::Differ, Verdict::Refused, Verdict::NotOffered, Verdict::Stopped] {
        let count = run.count(verdict);
        if count > 0 || matches!(verdict, Verdict::Agree | Verdict::Differ) {
            let _ =
                write!(html, "<div class=card><span>{}</span><b>{count}</b><span>copies</span></div>", verdict.words());
        }
    }
    html + "</div>"
}

fn of_listing(command: &str, listing: &Listing) -> String {
    let mut html = format!("<h3>{command}</h3><p>{} lines are in both outputs.</p>", listing.both);
    for (who, lines) in [("the server", &listing.server), ("mdfsck", &listing.mdfsck)] {
        if lines.is_empty() {
            continue;
        }
        let _ = write!(html, "<p>Lines of {who} alone: {}</p><ul>", lines.len());
        for line in lines.iter().take(MOST_LINES) {
            let _ = write!(html, "<li>{}", escape(line));
        }
        html.push_str("</ul>");
    }
    html
}

fn cases(cases: &[Case]) -> String {
    let heads: Vec<&str> =
        ["copy", "kind", "seed", "result", "how"].into_iter().chain(COLUMNS.into_iter().skip(6)).collect();
    let mut html = String::from("<div class=scroll tabindex=0><table><thead><tr>");
    for head in &heads {
        let _ = write!(html, "<th>{head}");
    }
    html.push_str("<tbody>");
    for case in cases {
        let _ = write!(html, "<tr><td><a href='{}/'>{}</a>", escape(&case.folder()), escape(&case.number));
        let how = [case.way.as_str(), case.text.as_str()].map(str::trim).join(" ");
        let cells = [case.kind.clone(), case.seed.clone(), case.verdict.words().to_owned(), how.trim().to_owned()];
        let counts = match case.verdict {
            Verdict::Agree | Verdict::Differ => case.counts.cells(),
            _ => Default::default(),
        };
        for (head, cell) in heads.iter().skip(1).zip(cells.iter().chain(&counts)) {
            let _ = write!(html, "<td data-head='{head}'>{}", escape(cell));
        }
    }
    html + "</table></div>"
}
