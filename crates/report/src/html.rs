//! What pages with charts share: one file each, without scripts, that needs nothing from the network.

/// The style sheet.
pub const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:2.5em auto;max-width:80em;padding:0 2em;color:#1d2733;background:#fff}\
h1{font-size:1.7em;margin:0}h2{font-size:1.2em;margin:2.2em 0 .4em}h3{font-size:1em;margin:1.6em 0 0;font-weight:600}\
p{color:#5a6673;margin:.2em 0 1em}.cards{display:flex;flex-wrap:wrap;gap:1em;margin:1.6em 0}\
.card{background:#f4f7fa;border-radius:.6em;padding:.9em 1.4em;min-width:11em}\
.card b{display:block;font-size:1.9em;line-height:1.2;font-weight:650}.card span{color:#5a6673;font-size:.9em}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em}tr:hover td{background:#f4f7fa}\
td,th{padding:.3em .9em;text-align:right;border-bottom:1px solid #e3e8ee;white-space:nowrap}\
td:first-child,th:first-child{text-align:left;padding-left:0}th{color:#5a6673;font-weight:500}\
figure{display:inline-block;margin:.6em 2em 0 0;vertical-align:top}figcaption{font-size:.85em;color:#5a6673}\
.row{display:flex;flex-wrap:wrap;gap:0 1em}.row figure{margin:.4em 0 0}\
text{font:12px system-ui,sans-serif;fill:#5a6673}.value{fill:#1d2733;text-anchor:middle}";

/// Text as HTML shows it, in an attribute too.
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// A round step of an axis, at least as large: 1, 2 or 5 times a power of ten.
pub fn tick(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|tick| *tick >= least).unwrap_or(10.0 * power)
}

/// A number with as many digits as a chart has room for.
pub fn short(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
