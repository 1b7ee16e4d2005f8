//! Shows, in a real browser, every kind of page that mdfsck makes. Some tests apply to all pages; others test special
//! features of one page.

use std::collections::BTreeSet;

use lab::events::Story;
use serde_json::{Value, json};

use super::browser::{Browser, Session};
use super::estate::{change, history, hostile_name};
use super::html::{data, sample};
use super::serve::{Server, Slow, waited};
use super::*;

pub(super) fn in_a_browser() -> Vec<Trial> {
    let pages: [(&'static str, Test); 7] = [
        ("in a browser: what must hold for a page is seen where it does not", of_faulty_pages),
        ("in a browser: the page of a check, damaged and sound", of_checks),
        ("in a browser: the page of a check with 80,000 findings, and with 500 damaged objects", of_many_findings),
        ("in a browser: the pages of checkpoints", of_checkpoints),
        ("in a browser: the page of a benchmark", of_benchmarks),
        ("in a browser: the pages of a history, and that databases can be sorted", of_histories),
        ("in a browser: the pages of a server", of_servers),
    ];
    let has_browser = Browser::find().is_some();
    pages.into_iter().map(|(name, test)| needs(&[("chromium", has_browser)], name, test)).collect()
}

/// The widths of a desktop and a phone in pixels, each in light and dark mode.
const SCREENS: [(u32, bool); 4] = [(1280, false), (1280, true), (390, false), (390, true)];
/// The test requires that the keyboard reaches the elements of a page, but only up to this number of elements. On a
/// page with more elements, the later elements are similar to the tested elements.
const MOST_STOPS: usize = 50;

/// A script that lists the faults of a page: elements that do not fit on the screen, cannot be read, or have no
/// accessible name.
const WRONG: &str = r#"(() => {
    const wrong = [];
    const root = document.documentElement;
    const isNarrow = innerWidth <= 620;
    const name = e => `${e.tagName}${e.id ? '#' + e.id : ''}.${e.getAttribute('class') ?? ''} "${e.textContent.slice(0, 30)}"`;
    const isSeen = e => e.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true}) && e.getClientRects().length > 0;
    if (root.scrollWidth > root.clientWidth) wrong.push(`the page scrolls sideways: ${root.scrollWidth} pixels`);
    const all = [...document.body.querySelectorAll('*')].filter(isSeen);
    for (const e of all) {
        const style = getComputedStyle(e);
        if (e.closest('svg') && e.tagName !== 'svg' || ['INPUT', 'SELECT', 'OPTION'].includes(e.tagName)) continue;
        const box = e.getBoundingClientRect();
        if (!e.closest('.scroll, pre') && box.width && (box.left < -.5 || box.right > root.clientWidth + .5)) wrong.push(`beyond the edge: ${name(e)}`);
        if (style.display === 'inline' || e.scrollWidth <= e.clientWidth + 1) continue;
        const scrolls = ['auto', 'scroll'].includes(style.overflowX);
        if (!scrolls && style.overflowX !== 'visible') wrong.push(`clipped: ${name(e)}`);
        if (scrolls && isNarrow && e.tagName !== 'PRE') wrong.push(`scrolls sideways on a phone: ${name(e)}`);
        if (scrolls && e.tabIndex < 0) wrong.push(`scrolls, but not by keyboard: ${name(e)}`);
    }
    for (const table of all.filter(e => e.tagName === 'TABLE')) {
        if (!table.closest('.scroll')) wrong.push(`a table that cannot scroll: ${name(table)}`);
        const heads = table.rows[0].cells.length;
        if ([...table.rows].some(row => row.cells.length !== heads)) wrong.push(`rows unlike their heads: ${name(table)}`);
    }
    // WCAG requires a contrast of at least 4.5, or of at least 3 for large text.
    const parts = text => (text.match(/[\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
    const ground = e => {
        for (let at = e; at; at = at.parentElement) {
            const color = parts(getComputedStyle(at).backgroundColor);
            if (color.length === 3 || color[3] > 0) return color;
        }
        return [255, 255, 255];
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const judged = new Set();
    while (texts.nextNode()) {
        const e = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || judged.has(e) || !isSeen(e) || e.closest('script, style, title, noscript')) continue;
        judged.add(e);
        const style = getComputedStyle(e);
        const [ink, paper] = [light(parts(e.closest('svg') ? style.fill : style.color)), light(ground(e))];
        const ratio = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
        if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${name(e)}`);
    }
    for (const e of document.querySelectorAll('a[href], button, input, select, summary, canvas, svg, nav')) {
        const label = e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim();
        if (isSeen(e) && !label) wrong.push(`without a name: ${name(e)}`);
    }
    const heads = [...document.querySelectorAll('h1')].filter(isSeen);
    if (heads.length !== 1 || !heads[0].textContent.trim()) wrong.push('not one heading');
    if (!document.title || root.lang !== 'en') wrong.push('no title or language');
    if (document.images.length) wrong.push('a picture: a name became markup');
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    if (new Set(ids).size !== ids.length) wrong.push('an id twice');
    return wrong.slice(0, 20);
})()"#;

/// A script that numbers the visible elements that can have the focus, in order, and returns their count.
const STOPS: &str = r#"(() => {
    const isSeen = e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0;
    const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
        .filter(e => isSeen(e) && !(e.type === 'radio' && !e.checked));
    all.forEach((e, at) => e.dataset.stop = at);
    return all.length;
})()"#;
/// A script that returns the number of the element with the focus, and whether the focus is visible.
const FOCUS: &str = r#"(() => {
    const e = document.activeElement;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    const isInView = box.bottom > 0 && box.top < innerHeight;
    return [Number(e.dataset?.stop ?? -1), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && isInView];
})()"#;

/// A page, and an expression that is not null once the page is complete.
struct Page<'a> {
    name: &'a str,
    url: String,
    ready: &'a str,
}

const SCRIPT_IS_DONE: &str = "document.documentElement.dataset.ready ?? null";
const IS_THERE: &str = "document.querySelector('h1')?.textContent || null";

fn file<'a>(folder: &Path, name: &'a str, ready: &'a str) -> Page<'a> {
    Page { name, url: format!("file://{}", folder.join(name).display()), ready }
}

/// Runs the tests that every page must pass.
fn holds(session: &mut Session, page: &Page<'_>) -> Result<(), Failed> {
    let mut grounds = Vec::new();
    for (width, is_dark) in SCREENS {
        let where_ = format!("{}, {width} pixels, {}", page.name, if is_dark { "dark" } else { "light" });
        session.show(&page.url, (width, is_dark))?;
        session.value(page.ready)?;
        let wrong = session.value(WRONG)?;
        ensure(wrong.as_array().is_some_and(Vec::is_empty), format!("{where_}: {wrong:#}"))?;
        let colors = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]";
        grounds.push(session.value(colors)?);
        contents_lead(session, &where_)?;
        if width > 1000 || is_dark {
            keyboard(session, &where_)?;
        }
        loads_nothing_else(session, page, &where_)?;
        ensure(session.complaints.is_empty(), format!("{where_}: {:?}", session.complaints))?;
    }
    let [light, dark, narrow_light, narrow_dark] = &grounds[..] else { return Err("screens".into()) };
    ensure(light == narrow_light && dark == narrow_dark, format!("{}: {grounds:?}", page.name))?;
    ensure(light[0] != dark[0] && light[1] != dark[1], format!("{}: no dark mode: {grounds:?}", page.name))
}

/// Requires that a page from a file loads nothing except the file itself, and that a page from a server loads
/// everything from this server.
fn loads_nothing_else(session: &mut Session, page: &Page<'_>, where_: &str) -> Result<(), Failed> {
    // While the session waits for the answer to this call, it also receives the browser's messages about earlier
    // requests.
    session.value("document.readyState")?;
    let without_part = |url: &str| url.split('#').next().unwrap_or(url).to_owned();
    let own = match page.url.strip_prefix("http://") {
        Some(rest) => format!("http://{}/", rest.split('/').next().unwrap_or(rest)),
        None => without_part(&page.url),
    };
    let is_own = |url: &String| if own.starts_with("file:") { without_part(url) == own } else { url.starts_with(&own) };
    ensure(!session.requests.is_empty(), format!("{where_}: nothing was asked for"))?;
    ensure(session.requests.iter().all(is_own), format!("{where_}: {:?}", session.requests))
}

/// Requires that the table of contents has one link for each section, in the order of the sections.
fn contents_lead(session: &mut Session, where_: &str) -> Result<(), Failed> {
    let links = "[...document.querySelectorAll('nav a')].map(link => link.textContent)";
    let heads =
        "[...document.querySelectorAll('h2')].filter(head => head.checkVisibility()).map(head => head.textContent)";
    let (links, heads) = (session.value(links)?, session.value(heads)?);
    let count = links.as_array().map_or(0, Vec::len);
    let sections = heads.as_array().map_or(0, Vec::len);
    ensure(links == heads || count == 0 && sections < 2, format!("{where_}: {links} but {heads}"))?;
    for at in [0, count / 2, count.saturating_sub(1)].into_iter().filter(|at| *at < count).collect::<BTreeSet<_>>() {
        session.value(&format!("document.querySelectorAll('nav a')[{at}].click(), true"))?;
        let lands = format!(
            "(() => {{ const head = [...document.querySelectorAll('h2')].filter(head => head.checkVisibility())[{at}];\
             const top = head.getBoundingClientRect().top;\
             return top > -40 && top < innerHeight }})()"
        );
        let mut tries = 0..20;
        while session.value(&lands)? != true {
            ensure(tries.next().is_some(), format!("{where_}: link {at} of {links} leads elsewhere"))?;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    session.value("scrollTo(0, 0), true")?;
    Ok(())
}

/// Requires that the keyboard reaches every control, that the focus is visible, and that a key opens and closes a
/// group.
fn keyboard(session: &mut Session, where_: &str) -> Result<(), Failed> {
    let stops = session.value(STOPS)?.as_u64().unwrap_or(0) as usize;
    let wanted: BTreeSet<usize> = (0..stops.min(MOST_STOPS)).collect();
    let mut reached = BTreeSet::new();
    // Resets the position from which Tab continues, because an earlier click on the last link of the table of contents
    // has moved it.
    session.value("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex'), getSelection().collapse(document.body, 0), true")?;
    for _ in 0..stops + 20 {
        if reached.is_superset(&wanted) {
            break;
        }
        session.press("Tab")?;
        let focus = session.value(FOCUS)?;
        let Some(stop) = focus[0].as_u64() else { continue };
        ensure(focus[1] == true, format!("{where_}: the focus on element {stop} is not seen"))?;
        reached.insert(stop as usize);
    }
    let missed: Vec<&usize> = wanted.difference(&reached).collect();
    ensure(missed.is_empty(), format!("{where_}: not reached by keyboard: {missed:?} of {stops}"))?;
    let focus = "(() => { const group = [...document.querySelectorAll('details:not([open]) > summary')].find(one => one.checkVisibility());\
                 group?.focus(); window.group = group?.parentElement; return group !== undefined })()";
    if session.value(focus)? == true {
        for is_open in [true, false] {
            session.press("Enter")?;
            let state = session.value("window.group.open")?;
            ensure(state == is_open, format!("{where_}: a group does not open and close by keyboard"))?;
        }
    }
    Ok(())
}

/// The headings of the sections, in order.
fn sections(session: &mut Session) -> Result<Vec<String>, Failed> {
    let heads =
        session.value("[...document.querySelectorAll('section:not([hidden]) h2')].map(head => head.textContent)")?;
    Ok(heads.as_array().into_iter().flatten().filter_map(|head| head.as_str().map(str::to_owned)).collect())
}

fn open(folder: &Path) -> Result<Session, Failed> {
    let browser = Browser::find().ok_or("no browser")?;
    Session::open(&browser, folder)
}

/// Shows pages with one fault each, and requires the message that belongs to the fault. This test proves that the
/// script `WRONG` finds faults.
fn of_faulty_pages(folder: &Path) -> Result<(), Failed> {
    let wide_table = format!("<table><tr>{}</table>", "<td>abcdefghijklmnop".repeat(9));
    let in_scroll = format!("<div class=scroll tabindex=0 style=overflow-x:auto>{wide_table}</div>");
    let without_focus =
        format!("<div class=scroll style=overflow-x:auto><div style=width:4000px>{wide_table}</div></div>");
    let faults = [
        ("<div style=width:2000px>x</div>", "the page scrolls sideways"),
        ("<p style='position:absolute;left:-9px'>x</p>", "beyond the edge"),
        ("<p style='width:50px;overflow:hidden;white-space:nowrap'>too long for its place</p>", "clipped"),
        (&wide_table, "a table that cannot scroll"),
        (&in_scroll, "scrolls sideways on a phone"),
        (&without_focus, "scrolls, but not by keyboard"),
        ("<div class=scroll><table><tr><th>a<tr><td>1<td>2</table></div>", "rows unlike their heads"),
        ("<p style=color:#888>x</p>", "contrast 3.54"),
        ("<p style=color:#737373>x</p>", "1280 pixels, dark"),
        ("<button></button>", "without a name"),
        ("<h1>again</h1>", "not one heading"),
        ("<p id=a>x</p><p id=a>x</p>", "an id twice"),
        ("<script>console.error('of the script')</script>", "of the script"),
        ("<script>missing()</script>", "missing is not defined"),
        ("<link rel=stylesheet href=other.css>", "other.css"),
        ("<a href='#' style=outline:0>x</a>", "the focus on element 0 is not seen"),
        ("<a href='#' onfocus=blur()>x</a>", "not reached by keyboard"),
        ("<details><summary onclick='event.preventDefault()'>x</summary></details>", "does not open"),
        ("<h2>a</h2><h2>b</h2>", "[\"a\",\"b\"]"),
        (
            "<nav><a href=#b>a</a><a href=#a>b</a></nav><h2 id=a style='margin-bottom:3000px'>a</h2><h2 id=b>b</h2>",
            "leads elsewhere",
        ),
        ("<style>body{background:#fff!important;color:#000!important}</style>", "no dark mode"),
    ];
    let mut session = open(folder)?;
    let start = "<!doctype html><html lang=en><title>t</title><style>body{background:#fff;color:#000}\
                 @media(prefers-color-scheme:dark){body{background:#000;color:#fff}a{color:#fff}}</style><h1>t</h1>";
    let page = file(folder, "faulty.html", IS_THERE);
    fs::write(folder.join("faulty.html"), start)?;
    holds(&mut session, &page)?;
    for (fault, expected) in faults {
        fs::write(folder.join("faulty.html"), format!("{start}{fault}"))?;
        match holds(&mut session, &page) {
            Ok(()) => return Err(format!("{fault} is not seen").into()),
            Err(error) => {
                let said = error.message().unwrap_or_default();
                ensure(said.contains(expected), format!("{fault}: {said}"))?;
            }
        }
    }
    Ok(())
}

const MAP_IS_DRAWN: &str =
    "document.documentElement.dataset.ready && document.querySelector('.legend')?.children.length || null";

fn of_checks(folder: &Path) -> Result<(), Failed> {
    sample(folder)?;
    for name in ["hurt", "sound"] {
        mdfsck(folder, &["check", name, "--html", &format!("{name}.html")]);
    }
    let mut session = open(folder)?;
    holds(&mut session, &file(folder, "hurt.html", MAP_IS_DRAWN))?;
    let heads = sections(&mut session)?;
    let first = ["What to do next", "Page map", "Findings", "Not verified"];
    ensure(heads.iter().zip(first).all(|(head, first)| head == first) && heads.len() > 4, format!("{heads:?}"))?;
    let is_before = "document.getElementById('verdict').compareDocumentPosition(document.querySelector('nav')) === 4 && \
                     document.querySelector('nav').compareDocumentPosition(document.getElementById('next')) === 4";
    ensure(session.value(is_before)? == true, "the verdict comes first, then the contents")?;
    // Even if all messages, bytes and tables are opened, the page must fit on the screen of a phone.
    session.show(&file(folder, "hurt.html", "").url, (390, false))?;
    session.value(MAP_IS_DRAWN)?;
    for _ in 0..3 {
        session
            .value("document.querySelectorAll('details:not([open]) > summary').forEach(one => one.click()), true")?;
        session.value("document.querySelector('details[open] .body') && true")?;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    ensure(session.value("document.querySelectorAll('pre').length > 0")? == true, "bytes are shown")?;
    let wrong = session.value(WRONG)?;
    ensure(wrong.as_array().is_some_and(Vec::is_empty), format!("opened: {wrong:#}"))?;
    holds(&mut session, &file(folder, "sound.html", MAP_IS_DRAWN))
}

/// Changes the value of an indexed column in each row of the table. The values in the index stay the same. Returns the
/// number of changed rows.
fn hurt_rows(path: &Path) -> Result<usize, Failed> {
    let mut bytes = fs::read(path)?;
    let mut changed = 0;
    for page in bytes.chunks_exact_mut(PAGE_BYTES) {
        let word = |page: &[u8], at: usize| usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
        // Skips pages that are not data pages of user tables.
        if page[1] != 1 || word(page, 6) != 256 {
            continue;
        }
        for slot in 1..=word(page, 22) {
            let row = word(page, PAGE_BYTES - 2 * slot);
            // A record of `entries` begins with these bytes. Its second column is the indexed int.
            if page[row..row + 4] == [0x10, 0, 0x38, 0] {
                page[row + 12] ^= 0x40;
                changed += 1;
            }
        }
    }
    fs::write(path, bytes)?;
    Ok(changed)
}

fn of_many_findings(folder: &Path) -> Result<(), Failed> {
    let new = ["lab", "new", "many", "--size", "12MB", "--schema", "entries", "--verify", "none"];
    ensure(mdfsck(folder, &new).status.success(), "lab new")?;
    let changed = hurt_rows(&folder.join("many/entries.mdf"))?;
    ensure(changed > 30_000, format!("{changed} rows"))?;
    mdfsck(folder, &["check", "many", "--html", "many.html"]);
    let page = fs::read_to_string(folder.join("many.html"))?;
    let mut model = data(&page)?;
    ensure(model["findings"]["count"].as_u64() > Some(60_000), model["findings"]["count"].to_string())?;
    // Makes a similar page with very many objects, each with a few findings.
    let place = &model["findings"]["places"][0];
    let few = |at: usize| {
        let mut place = place.clone();
        let count = at % 5 + 1;
        place["count"] = count.into();
        place["messages"][0]["count"] = count.into();
        if let Some(shown) = place["messages"][0]["shown"].as_array_mut() {
            shown.truncate(count);
        }
        place
    };
    model["findings"]["places"] = (0..500).map(few).collect();
    let (before, rest) = page.split_once(" id=data>").ok_or("no data")?;
    let (_, after) = rest.split_once("</script>").ok_or("no end")?;
    let model = model.to_string().replace('<', "\\u003c");
    fs::write(folder.join("objects.html"), format!("{before} id=data>{model}</script>{after}"))?;
    let mut session = open(folder)?;
    for (name, most) in [("many.html", 3000), ("objects.html", 5000)] {
        holds(&mut session, &file(folder, name, MAP_IS_DRAWN))?;
        for (screen, most) in [((1280, false), most), ((390, false), 2 * most)] {
            session.show(&file(folder, name, "").url, screen)?;
            session.value(MAP_IS_DRAWN)?;
            let height = session.value("document.documentElement.scrollHeight")?;
            ensure(height.as_u64() < Some(most), format!("{name} at {screen:?}: {height} pixels high"))?;
        }
        // A group is open only if it has at most three places.
        let open = "[...document.querySelectorAll('#places > details[open] > summary .n')].map(one => parseInt(one.textContent.replaceAll(',', '')))";
        let open = session.value(open)?;
        let counts: Vec<u64> = open.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        ensure(counts.iter().all(|count| *count <= 3), format!("{name}: {counts:?} are open"))?;
        ensure(counts.is_empty() == (name == "many.html"), format!("{name}: {counts:?} are open"))?;
    }
    // The page also contains the places in collapsed groups.
    let all = "(document.querySelector('#places > details:last-child > summary').click(), true)";
    session.value(all)?;
    let count = "document.querySelectorAll('#places > details, #places > details:last-child > div > details').length === 501 || null";
    session.value(count)?;
    Ok(())
}

fn of_checkpoints(folder: &Path) -> Result<(), Failed> {
    // The page shows three databases over nine hours, and a log that covers two minutes.
    fs::write(folder.join("story.xel"), Story::new(1, 3, 600, true).event_file(0x1000))?;
    fs::write(folder.join("ERRORLOG"), Story::new(1, 3, 600, true).error_log(9000, 60))?;
    let story = ["checkpoints", "--html", "story.html", "--change", "5=2016-07-09T06:00Z", "story.xel", "ERRORLOG"];
    ensure(mdfsck(folder, &story).status.success(), "checkpoints of a story")?;
    ensure(mdfsck(folder, &["lab", "crash", "crash"]).status.success(), "lab crash")?;
    ensure(mdfsck(folder, &["checkpoints", "crash", "--html", "log.html"]).status.success(), "checkpoints of a log")?;
    let mut session = open(folder)?;
    for name in ["story.html", "log.html"] {
        holds(&mut session, &file(folder, name, IS_THERE))?;
        // In a heat map, a third of the cells have values, and all cells are visible.
        let cells = "[...document.querySelectorAll('.heat')].map(map => [map.querySelectorAll('i[title]').length, map.querySelectorAll('i').length, \
                     Math.min(...[...map.querySelectorAll('i')].map(cell => cell.clientWidth))])";
        let maps = session.value(cells)?;
        let maps = maps.as_array().filter(|maps| !maps.is_empty()).ok_or("no heat map")?;
        for map in maps {
            let [used, all, width] = [0, 1, 2].map(|at| map[at].as_u64().unwrap_or(0));
            ensure(
                used * 3 >= all && used > 0 && width >= 6,
                format!("{name}: {used} of {all} cells, {width} pixels wide"),
            )?;
        }
        let plots = session
            .value("[...document.querySelectorAll('.plot svg')].map(plot => [plot.clientWidth, plot.clientHeight])")?;
        let is_legible = |plot: &Value| plot[0].as_u64() > Some(200) && plot[1].as_u64() > Some(100);
        ensure(
            plots.as_array().is_some_and(|plots| !plots.is_empty() && plots.iter().all(is_legible)),
            plots.to_string(),
        )?;
    }
    Ok(())
}

fn of_benchmarks(folder: &Path) -> Result<(), Failed> {
    ensure(mdfsck(folder, &["lab", "new", "s", "--size", "9MB"]).status.success(), "lab new")?;
    let cells = ["--maxdop", "1,2,3", "--memory", "1MB,100MB", "--cache", "warm,cold", "--repeat", "1"];
    mdfsck(folder, &[&["bench"], &cells[..], &["--save", "before", "s"]].concat());
    mdfsck(folder, &[&["bench"], &cells[..], &["--against", "before", "--html", "bench.html", "s"]].concat());
    let mut session = open(folder)?;
    holds(&mut session, &file(folder, "bench.html", IS_THERE))?;
    ensure(session.value("document.querySelectorAll('svg').length > 2")? == true, "charts")
}

fn of_histories(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    change(folder, &format!("UPDATE database SET name = '{}' WHERE id = 2", hostile_name()))?;
    let html = |name: &str, options: &[&str]| {
        let made = mdfsck(folder, &[&["history", "h.db", "html", "-o", name], options].concat());
        ensure(made.status.success(), text(&made.stderr))
    };
    html("all.html", &[])?;
    let all = data(&fs::read_to_string(folder.join("all.html"))?)?;
    let worst = &all["estate"]["rows"][0];
    html("one.html", &["--database", worst["family"].as_str().ok_or("no family")?])?;
    let mut session = open(folder)?;
    let estate = file(folder, "all.html", SCRIPT_IS_DONE);
    holds(&mut session, &estate)?;
    let of_database =
        Page { url: format!("{}#database-{}", estate.url, worst["id"]), name: "a database", ready: MAP_IS_DRAWN };
    holds(&mut session, &of_database)?;
    holds(&mut session, &file(folder, "one.html", MAP_IS_DRAWN))?;
    sorts(&mut session, &estate)
}

/// Requires that a click on a column heading sorts the table. On a phone, a selection list next to the filter must sort
/// it instead.
fn sorts(session: &mut Session, estate: &Page<'_>) -> Result<(), Failed> {
    let order =
        "[...document.querySelectorAll('#estate tbody tr')].map(row => row.querySelector('.state').textContent)";
    let places = "[...document.querySelectorAll('#estate td.place')].every(cell => /\\S: .*orders\\.mdf/.test(cell.textContent))";
    session.show(&estate.url, (1280, false))?;
    session.value(SCRIPT_IS_DONE)?;
    ensure(session.value(order)? == json!(["corrupt", "sound"]), "worst first")?;
    ensure(session.value(places)? == true, "server and path")?;
    let fits = "(list => list.scrollWidth <= list.clientWidth)(document.getElementById('estate'))";
    ensure(session.value(fits)? == true, "a desktop has room for all columns")?;
    let sorted = "[...document.querySelectorAll('#estate th')].map(head => head.getAttribute('aria-sort'))";
    for (head, first) in [(1, "ascending"), (3, "descending"), (7, "descending")] {
        let mut seen = Vec::new();
        for direction in [first, if first == "ascending" { "descending" } else { "ascending" }] {
            session.value(&format!("document.querySelectorAll('#estate th button')[{head}].focus(), true"))?;
            session.press("Enter")?;
            let directions = session.value(sorted)?;
            ensure(directions[head] == direction, format!("column {head}: {directions}"))?;
            let count = directions.as_array().into_iter().flatten().filter(|one| !one.is_null()).count();
            ensure(count == 1, directions.to_string())?;
            seen.push(session.value(order)?);
        }
        ensure(seen[0] != seen[1], format!("column {head} does not sort: {seen:?}"))?;
    }
    // The first click on the column of open findings sorts it in descending order.
    session.value("document.querySelectorAll('#estate th button')[3].click(), true")?;
    ensure(session.value(order)? == json!(["corrupt", "sound"]), "most findings first")?;
    session.show(&estate.url, (390, false))?;
    session.value(SCRIPT_IS_DONE)?;
    let choose = "(() => { const list = document.querySelector('.sort select'); if (!list.checkVisibility()) return false;\
                  list.selectedIndex = 1; list.dispatchEvent(new Event('change')); return true })()";
    ensure(session.value(choose)? == true, "a phone has a list")?;
    let path = "[...document.querySelectorAll('#estate td.place')].map(cell => cell.textContent)";
    let paths = session.value(path)?;
    let mut expected: Vec<&str> = paths.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    expected.sort_unstable();
    ensure(expected.len() == 2 && paths == json!(expected), paths.to_string())
}

fn of_servers(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    change(folder, &format!("UPDATE database SET name = '{}' WHERE id = 2", hostile_name()))?;
    ensure(mdfsck(folder, &["lab", "new", "slow", "--size", "40MB", "--seed", "5"]).status.success(), "lab new")?;
    let server = Server::start(folder, &["--allow-ack"])?;
    let estate = server.model("/")?;
    let worst = estate["estate"]["rows"][0]["id"].clone();
    let database = server.model(&format!("/database/{worst}"))?;
    let (run, key) = (&database["database"]["runs"][1]["id"], &database["database"]["findings"]["shown"][0]["key"]);
    let mut session = open(folder)?;
    let page = |path: String, ready| Page { name: "a page of a server", url: server.url(&path), ready };
    let run = page(format!("/run/{run}"), SCRIPT_IS_DONE);
    for page in [
        page("/".to_owned(), SCRIPT_IS_DONE),
        page(format!("/database/{worst}"), MAP_IS_DRAWN),
        run,
        page(format!("/page/{key}"), IS_THERE),
    ] {
        holds(&mut session, &Page { name: &page.url.clone(), ..page })?;
    }
    // Starts a check that is still running when this test ends.
    let slow = Slow::start(folder, "slow", "500KB")?;
    let running = waited(|| {
        let first = server.model("/")?["estate"]["running"][0].clone();
        Ok(Some(first).filter(|first| first["done"].as_u64() > Some(0)))
    })?;
    // The page reloads itself. Everything that it loads must come from this server.
    let number = running["id"].to_string();
    for path in [format!("/running/{number}"), "/".to_owned()] {
        for screen in SCREENS {
            let url = format!("http://127.0.0.1:{}{path}", server.port);
            session.show(&url, screen)?;
            session.value(SCRIPT_IS_DONE)?;
            let wrong = session.value(WRONG)?;
            ensure(wrong.as_array().is_some_and(Vec::is_empty), format!("{path} {screen:?}: {wrong:#}"))?;
            ensure(session.complaints.is_empty(), format!("{path}: {:?}", session.complaints))?;
            let own = format!("http://127.0.0.1:{}/", server.port);
            ensure(session.requests.iter().all(|url| url.starts_with(&own)), format!("{:?}", session.requests))?;
        }
    }
    drop(slow);
    Ok(())
}
