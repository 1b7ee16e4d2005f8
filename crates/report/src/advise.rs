//! Writes the plan of `mdfsck advise` as text, JSON and a script. The plan names the steps to take after a check.

use std::io;

use advise::{LossSummary, Plan, Step};
use findings::Report;
use format::PageId;

use crate::json::advise as lines;
use crate::json::{VERSION, line, pattern_line};
use crate::patterns;
use crate::server_text::lsn_text;
use crate::text_table::{printable, wrap};

/// Width of the text, in columns.
const COLUMNS: usize = 80;

/// Maximum number of pages that the text names.
const MOST_PAGES: usize = 12;

/// Writes a plan for people: the situation, the patterns of the damage, the losses, then numbered steps.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(plan: &Plan, out: &mut dyn io::Write) -> io::Result<()> {
    paragraph("", &plan.sentence, out)?;
    plan.patterns.iter().try_for_each(|pattern| paragraph("  Pattern: ", &patterns::line(pattern), out))?;
    for (set, why) in &plan.rejected {
        paragraph("  Not usable: ", &format!("{set}: {why}."), out)?;
    }
    if !plan.losses.is_empty() {
        writeln!(out, "\nLost, unless a backup has it:")?;
        plan.losses.iter().try_for_each(|loss| write_loss(loss, out))?;
    }
    for (number, step) in plan.steps.iter().enumerate() {
        writeln!(out)?;
        write_step(number + 1, step, out)?;
    }
    Ok(())
}

fn write_loss(loss: &LossSummary, out: &mut dyn io::Write) -> io::Result<()> {
    paragraph("  ", &format!("{}, {}: {}", loss.object, pages(&loss.pages), rows(loss)), out)?;
    paragraph("    which   ", &loss.which, out)?;
    let columns: Vec<String> = loss.recoverable.iter().map(|(column, index)| format!("{column} ({index})")).collect();
    match columns.is_empty() {
        true => paragraph("    left    ", "nothing: no nonclustered index has columns of these rows", out),
        false => paragraph("    left    ", &format!("columns in indexes: {}", columns.join(", ")), out),
    }
}

/// The range of lost rows as text, such as `3 to 40 rows`.
fn rows(loss: &LossSummary) -> String {
    match (loss.least_rows, loss.most_rows) {
        (least, Some(most)) if least == most => format!("{least} {}", if least == 1 { "row" } else { "rows" }),
        (least, Some(most)) => format!("{least} to {most} rows"),
        (least, None) => format!("at least {least} rows"),
    }
}

fn write_step(number: usize, step: &Step, out: &mut dyn io::Write) -> io::Result<()> {
    paragraph(&format!("{number}. "), &format!("{}.", step.title), out)?;
    if !step.pages.is_empty() {
        paragraph("   pages   ", &pages(&step.pages), out)?;
    }
    paragraph("   why     ", &step.reason, out)?;
    paragraph("   proven  ", step.proven.as_deref().unwrap_or_default(), out)?;
    paragraph("   labels  ", step.by_labels.as_deref().unwrap_or_default(), out)?;
    if let Some(lost) = &step.cannot_restore {
        paragraph("   lost    ", lost, out)?;
    }
    paragraph("   risk    ", &step.risk, out)?;
    paragraph("   based on ", &step.rests_on.iter().copied().collect::<Vec<_>>().join(", "), out)?;
    for file in &step.from {
        writeln!(out, "   from    {}", printable(file))?;
    }
    if let Some(lsn) = step.lsn {
        writeln!(out, "   to LSN  {}", lsn_text(lsn))?;
    }
    if let Some(command) = &step.command {
        writeln!(out, "   run     {}", printable(command))?;
    }
    // Statements are not wrapped, so that they can be copied.
    for text in step.sql.iter().flat_map(|sql| sql.lines()) {
        writeln!(out, "{}", format!("     {}", printable(text)).trim_end())?;
    }
    Ok(())
}

/// Writes a paragraph. `first` starts the first line; the other lines are indented by the width of `first`.
fn paragraph(first: &str, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let margin = first.len();
    for (number, text) in wrap(&printable(text), COLUMNS.saturating_sub(margin)).iter().enumerate() {
        match number {
            0 => writeln!(out, "{first}{text}")?,
            _ => writeln!(out, "{:margin$}{text}", "")?,
        }
    }
    Ok(())
}

/// The pages as text, such as `(1:57), (1:202) and 3 more`.
fn pages(pages: &[PageId]) -> String {
    let texts: Vec<String> = pages.iter().take(MOST_PAGES).map(PageId::to_string).collect();
    match pages.len().saturating_sub(MOST_PAGES) {
        0 => texts.join(", "),
        more => format!("{} and {more} more", texts.join(", ")),
    }
}

/// Writes a plan as lines of JSON, and the patterns of the damage before them.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_json(plan: &Plan, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for pattern in &plan.patterns {
        line(&lines::AdviceLine::Pattern(Box::new(pattern_line(pattern))), out)?;
    }
    let name = |page: &PageId| format!("{}:{}", page.file, page.page);
    for (number, step) in plan.steps.iter().enumerate() {
        let step = lines::AdviceStep {
            n: number + 1,
            action: step.action.name(),
            title: &step.title,
            object: step.object.as_deref(),
            index: step.index.as_deref(),
            pages: step.pages.iter().map(name).collect(),
            from: &step.from,
            lsn: step.lsn.map(lsn_text),
            reason: &step.reason,
            risk: &step.risk,
            cannot_restore: step.cannot_restore.as_deref(),
            proven: step.proven.as_deref(),
            by_labels: step.by_labels.as_deref(),
            sql: &step.sql,
            command: step.command.as_deref(),
            findings: step.rests_on.iter().copied().collect(),
        };
        line(&lines::AdviceLine::Step(step), out)?;
    }
    for loss in &plan.losses {
        let column = |(column, index): &'_ (String, String)| (column.clone(), index.clone());
        let columns: Vec<(String, String)> = loss.recoverable.iter().map(column).collect();
        let loss = lines::AdviceLoss {
            object: &loss.object,
            pages: loss.pages.iter().map(name).collect(),
            rows: loss.least_rows,
            most_rows: loss.most_rows,
            first_key: loss.first_key.as_deref(),
            last_key: loss.last_key.as_deref(),
            which: &loss.which,
            columns_recoverable: columns
                .iter()
                .map(|(column, index)| lines::RecoverableColumn { column, index })
                .collect(),
        };
        line(&lines::AdviceLine::Loss(loss), out)?;
    }
    for (set, reason) in &plan.rejected {
        line(&lines::AdviceLine::Rejected(lines::RejectedBackup { set, reason }), out)?;
    }
    let summary = lines::AdviceSummary {
        v: VERSION,
        database: &report.database.name,
        situation: plan.situation.name(),
        sentence: &plan.sentence,
        steps: plan.steps.len(),
        findings: report.findings.len(),
        complete: report.complete_as_allowed(),
    };
    line(&lines::AdviceLine::Summary(summary), out)
}

/// Writes the statements of a plan as a script, with the reasons as comments.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_script(plan: &Plan, out: &mut dyn io::Write) -> io::Result<()> {
    comment(&plan.sentence, out)?;
    plan.patterns.iter().try_for_each(|pattern| comment(&format!("Pattern: {}", patterns::line(pattern)), out))?;
    comment(
        "Review this script before you run it: mdfsck never runs it. As written, the script changes nothing: each step \
        begins with SET NOEXEC ON, and takes effect only after you delete that line. Run the script step by step, and \
        stop when the damage is repaired.",
        out,
    )?;
    comment(
        "The script has the paths at which mdfsck found the backup files; the server must find the files there too.",
        out,
    )?;
    for (number, step) in plan.steps.iter().enumerate() {
        writeln!(out)?;
        comment(&format!("Step {}. {}.", number + 1, step.title), out)?;
        comment(&format!("Why: {}", step.reason), out)?;
        for (what, text) in [("Proven", &step.proven), ("Labels", &step.by_labels), ("Lost", &step.cannot_restore)] {
            text.iter().try_for_each(|text| comment(&format!("{what}: {text}"), out))?;
        }
        comment(&format!("Risk: {}", step.risk), out)?;
        if let Some(command) = &step.command {
            writeln!(out, "-- Run: {}", script_text(command))?;
        }
        write_statements(number + 1, &step.sql, out)?;
    }
    Ok(())
}

/// Writes the statements of a step behind a guard: a server executes none of them until a person deletes the guard.
/// Comments at the beginning may tell what to do outside of the server first, so they precede the guard.
fn write_statements(number: usize, sql: &[String], out: &mut dyn io::Write) -> io::Result<()> {
    let is_of_start = |sql: &&String| !runs(sql) || sql.starts_with("USE ");
    let start = sql.iter().take_while(is_of_start).count();
    let (start, rest) = sql.split_at(start);
    let (statements, comments): (Vec<&String>, Vec<&String>) = start.iter().partition(|sql| runs(sql));
    comments.iter().try_for_each(|sql| writeln!(out, "{sql}"))?;
    let is_guarded = sql.iter().any(|sql| runs(sql));
    if is_guarded {
        writeln!(out, "-- To run step {number}, delete the next line.\nSET NOEXEC ON;")?;
    }
    statements.into_iter().chain(rest).try_for_each(|sql| writeln!(out, "{sql}"))?;
    if is_guarded {
        writeln!(out, "SET NOEXEC OFF;")?;
    }
    Ok(())
}

/// Whether the SQL text contains at least one statement and not just comments.
fn runs(sql: &str) -> bool {
    sql.lines().any(|line| !line.trim().is_empty() && !line.starts_with("--"))
}

/// Writes a text as comment lines.
fn comment(text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    wrap(&script_text(text), COLUMNS - 3).iter().try_for_each(|text| writeln!(out, "-- {text}"))
}

/// Makes a text safe inside a comment: no line breaks, and no `$(`, because sqlcmd replaces variables even in comments.
fn script_text(text: &str) -> String {
    printable(text).replace(['\u{2028}', '\u{2029}'], " ").replace("$(", "$ (")
}
