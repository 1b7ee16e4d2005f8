//! The common parts of pages with charts. Unless a server sends the page, it is one file that needs nothing from the
//! network. The layout fits phones and dark screens.

mod cause;
mod curves;
mod encode;
mod text;

use std::fmt::Write;

pub(crate) use cause::{Cause, What};
pub use curves::Curves;
pub(crate) use encode::{Base64, Escaped, push_number};
pub(crate) use text::{Budget, shown, shown_to};

/// The style sheet. Colors are variables, which have other values on a dark screen.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2733;--soft:#5a6673;--line:#e3e8ee;--card:#f4f7fa;--page:#fff;\
--blue:#0072b2;--green:#00805c;--red:#c2500a;--then:#9aa5b1}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf0;--soft:#a7b2bd;--line:#313c47;--card:#1c252d;--page:#11171c;\
--blue:#56b4e9;--green:#2fbf93;--red:#ff8a4c;--then:#6b7784}}\
*{box-sizing:border-box}\
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:84em;padding:2em 1.2em;color:var(--ink);background:var(--page)}\
h1{font-size:1.7em;line-height:1.2;margin:0;overflow-wrap:anywhere}h2{font-size:1.2em;margin:2em 0 .4em}\
h3{font-size:1em;margin:1.6em 0 0;font-weight:600}\
p{color:var(--soft);margin:.2em 0 1em;overflow-wrap:anywhere}.cards{display:flex;flex-wrap:wrap;gap:1em;margin:1.6em 0}\
.card{background:var(--card);border-radius:.6em;padding:.9em 1.4em;min-width:11em}\
.card b{display:block;font-size:1.7em;line-height:1.25;font-weight:650}.card span{color:var(--soft);font-size:.9em}\
nav{display:flex;flex-wrap:wrap;gap:.3em 1.3em;margin:1.5em 0 0;font-size:.95em}a{color:var(--blue)}\
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--blue);outline-offset:2px}\
h2,section{scroll-margin-top:1em}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em}\
tr:hover td{background:var(--card)}\
td,th{padding:.3em .9em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
td:first-child,th:first-child{text-align:left;padding-left:0}th{color:var(--soft);font-weight:500}\
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15em 1.2em;margin:1em 0}dt{color:var(--soft)}\
dd{margin:0;overflow-wrap:anywhere}\
figure{margin:.6em 0 0;max-width:40em}figcaption{font-size:.9em;color:var(--soft)}\
svg{display:block;width:100%;height:auto}\
.plot{max-width:none;display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.5em .8em;font-size:12px;color:var(--soft)}\
.plot figcaption{grid-column:1/-1;font-size:13.5px;margin-bottom:.6em}.plot svg{height:170px}.plot path{vector-effect:non-scaling-stroke}\
.plot div{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1em}.plot .x{grid-column:2}\
.plot .y{flex-flow:column nowrap;text-align:right;line-height:1.2;margin:-.6em 0}\
.heat{max-width:none}.heat div{display:grid;gap:2px;align-items:center;justify-content:start;font-size:12px;color:var(--soft);margin-top:.4em}\
.heat .day{padding-right:.8em}.heat .gap{grid-column:1/-1;line-height:1.9}.heat i{height:1.4em;border-radius:2px;background:var(--card)}\
.heat i[title]{background:color-mix(in srgb,var(--blue) var(--n),var(--card))}\
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24em),1fr));gap:1em 2.5em}\
.row{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,14em),1fr));gap:.2em 1.5em}.row figure{max-width:20em}\
text{font:12px system-ui,sans-serif;fill:var(--soft)}.ink{fill:var(--ink)}.bad{fill:var(--red)}.end{text-anchor:end}\
.axis{stroke:var(--line)}.blue{fill:var(--blue);stroke:var(--blue)}.green{fill:var(--green);stroke:var(--green)}\
.line{fill:none}.band{fill:none;pointer-events:all}.band.other{fill:var(--ink);opacity:.05}\
.change{stroke:var(--red);stroke-dasharray:4 3}.spread{stroke:var(--ink)}\
@media(max-width:620px){.scroll table,.scroll tbody{display:block}.scroll thead{display:none}\
.scroll tr{display:grid;grid-template-columns:fit-content(45%) minmax(0,1fr);gap:.1em .9em;padding:.7em 0;border-bottom:1px solid var(--line);\
overflow-wrap:anywhere}.scroll tr[hidden]{display:none}\
.scroll td{display:contents;white-space:normal;text-align:left}.scroll td::before{content:attr(data-head);color:var(--soft)}\
.scroll td:first-child{display:block;grid-column:1/-1;max-width:none;border:0;padding:0;font-weight:600}\
.scroll td:first-child::before{content:none}}";

/// The start of a page, up to and including its heading.
pub fn head(title: &str) -> String {
    let title = escape(title);
    format!("{}<title>{title}</title><style>{STYLE}</style><h1>{title}</h1>", start(""))
}

/// Styles of pages with a script, in addition to the styles of all pages.
const SCRIPTED: &str = include_str!("html/page.css");
/// The script that several pages share. It makes elements, lists, tables, and texts for sizes.
pub(crate) const ELEMENTS: &str = include_str!("html/elements.js");
/// The script that draws maps of files.
pub(crate) const MAP: &str = include_str!("html/map.js");

/// The start of a page with a script: its content policy, and `style` in addition to the style of all pages. The script
/// sets the title.
pub(crate) fn head_of_script(style: &str) -> String {
    // With this policy the page loads nothing and sends nothing, whatever the names in it contain.
    const POLICY: &str = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
                          script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\
                          <meta name=referrer content=no-referrer>";
    format!("{}<title>mdfsck</title><style>{STYLE}{SCRIPTED}{style}</style>", start(POLICY))
}

/// The start of a page that a server sends. The server sends the style sheet, and the script if there is one,
/// separately under these names.
pub(crate) fn head_of_served(title: &str, style: &str, script: Option<&str>) -> String {
    let script = script.map_or_else(String::new, |script| format!("<script defer src={script}></script>"));
    format!(
        "{}<title>{}</title><link rel=stylesheet href={style}>{script}",
        start("<meta name=referrer content=no-referrer>"),
        escape(title)
    )
}

/// The style sheet that a server sends for its pages.
pub(crate) fn style_of_served(style: &str) -> String {
    format!("{STYLE}{SCRIPTED}{style}")
}

fn start(policy: &str) -> String {
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8>{policy}\
         <meta name=viewport content='width=device-width,initial-scale=1'>"
    )
}

/// A table that scrolls if it is wider than the page. On a narrow screen each row becomes a list, in which each cell
/// follows the name of its column.
pub fn table<'h>(
    heads: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
) -> String {
    let mut html = String::from("<div class=scroll tabindex=0><table><thead><tr>");
    let heads: Vec<String> = heads.into_iter().map(escape).collect();
    for head in &heads {
        let _ = write!(html, "<th>{head}");
    }
    html.push_str("<tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (at, cell) in row.into_iter().enumerate() {
            match heads.get(at).filter(|_| at > 0 && !cell.is_empty()) {
                Some(head) => {
                    let _ = write!(html, "<td data-head='{head}'>{}", escape(&cell));
                }
                None => {
                    let _ = write!(html, "<td>{}", escape(&cell));
                }
            }
        }
    }
    html + "</table></div>"
}

/// Puts a list of links before the sections of a page without a script. Each section begins with an `<h2>` heading, to
/// which a link leads.
pub fn with_contents(sections: &str) -> String {
    let mut parts = sections.split("<h2>");
    let mut html = parts.next().unwrap_or_default().to_owned();
    let (mut links, mut rest) = (String::new(), String::new());
    for (at, part) in parts.enumerate() {
        let title = part.split_once("</h2>").map_or("", |(title, _)| title);
        let _ = write!(links, "<a href=#s{at}>{title}</a>");
        let _ = write!(rest, "<h2 id=s{at}>{part}");
    }
    if !links.is_empty() {
        let _ = write!(html, "<nav aria-label=Contents>{links}</nav>");
    }
    html + &rest
}

/// A chart under its caption, as wide as the page allows.
pub fn figure(caption: &str, width: f64, height: f64, content: &str) -> String {
    format!(
        "<figure><figcaption>{0}</figcaption><svg viewBox='0 0 {width:.0} {height:.0}' role=img aria-label='{0}'>{content}</svg></figure>",
        escape(caption)
    )
}

/// The scale of an axis from 0 to at least `most`: the distance between two marks, and the end of the axis.
pub fn axis(most: f64, steps: f64) -> (f64, f64) {
    let step = tick(most / steps);
    (step, (most / step).ceil() * step)
}

/// Text escaped for HTML, also for use in an attribute.
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// The smallest round step of at least `least`. Round steps are 1, 2 or 5 times a power of ten.
fn tick(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|tick| *tick >= least).unwrap_or(10.0 * power)
}

/// A number as a text that is short enough for a chart.
pub fn short(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_step() {
        for (most, expected) in [(0.83, (0.5, 1.0)), (1.0, (0.5, 1.0)), (7.0, (2.0, 8.0)), (0.0, (1e-6, 0.0))] {
            let (step, end) = axis(most, 4.0);
            assert!((step - expected.0).abs() < 1e-9 && (end - expected.1).abs() < 1e-9, "{most}: {step} {end}");
        }
        assert_eq!([0.0, 0.004, 0.25, 12.34, 123.4].map(short), ["0", "0.004", "0.25", "12.3", "123"]);
    }

    #[test]
    fn what_a_cell_holds_stays_in_it() {
        let html = table(["a<b", "'c"], [["</td><script>".to_owned(), "x".to_owned()]]);
        assert!(html.contains("<th>a&lt;b") && html.contains("<td data-head='&#39;c'>x") && !html.contains("<script"));
    }

    #[test]
    fn contents_lead_to_each_section() {
        assert_eq!(with_contents("<p>none</p>"), "<p>none</p>");
        assert_eq!(
            with_contents("<p></p><h2>A &lt;</h2>1<h2>B</h2>2"),
            "<p></p><nav aria-label=Contents><a href=#s0>A &lt;</a><a href=#s1>B</a></nav><h2 id=s0>A &lt;</h2>1<h2 id=s1>B</h2>2"
        );
    }
}
