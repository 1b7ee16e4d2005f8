//! Rows that violate a constraint, as CHECKCONSTRAINTS lists them: Table, Constraint, Where.

use std::collections::BTreeMap;
use std::io;

use findings::{Finding, Report, Value};

use crate::View;
use crate::text_table::TextTable;

/// Writes the rows of the violations that the view allows; writes nothing if there are no violations.
pub(crate) fn write(report: &Report, view: View, out: &mut dyn io::Write) -> io::Result<()> {
    let shown = view.max_findings.unwrap_or(usize::MAX);
    let names: BTreeMap<i32, (&str, &str)> = report
        .rowsets
        .iter()
        .map(|rowset| (rowset.object_id, (rowset.schema.as_str(), rowset.name.as_str())))
        .collect();
    let mut table = TextTable::new(&[]);
    table.row(["Table", "Constraint", "Where"]);
    let mut is_empty = true;
    for finding in report.findings.iter().filter(|finding| finding.check.is_of_constraints()).take(shown) {
        let name = match finding.owner.and_then(|owner| names.get(&owner.object_id)) {
            Some((schema, name)) => format!("{}.{}", bracketed(schema), bracketed(name)),
            None => text(&finding, "table").to_owned(),
        };
        table.row([name, bracketed(text(&finding, "constraint")), text(&finding, "where").to_owned()]);
        is_empty = false;
    }
    if is_empty { Ok(()) } else { table.write(0, out) }
}

fn text<'a>(finding: &'a Finding, name: &str) -> &'a str {
    match finding.value(name) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// A name in brackets, as QUOTENAME writes it.
fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}
