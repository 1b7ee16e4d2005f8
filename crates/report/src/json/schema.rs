//! Generates docs/json.schema.json and the tables of docs/json.md from the types of the lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::lines::Named;
use super::{
    advise, audit, backup, chains, checkpoints, comparison, events, explain, export, history, lines, log, parts, watch,
};

/// Every line that a command writes to stdout.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AnyLine {
    Line(lines::Line<'static>),
    Log(log::LogLine<'static>),
    Audit(audit::AuditLine),
    Advice(advise::AdviceLine<'static>),
    Comparison(comparison::ComparisonLine<'static>),
    Events(events::EventLine<'static>),
    Checkpoints(checkpoints::CheckpointsLine<'static>),
    Explain(explain::ExplainLine<'static>),
    Export(export::ExportLine<'static>),
    History(history::HistoryLine<'static>),
    Parts(parts::PartsLine<'static>),
    Watch(watch::WatchLine<'static>),
    Media(backup::Media<'static>),
    Chains(chains::Chains<'static>),
}

/// Types with variants that are lines. The second text of each entry names the command that writes these lines; it is
/// empty for a check.
const KINDS_OF_LINES: [(&str, &str); 12] = [
    ("Line", ""),
    ("LogLine", " of `mdfsck log`"),
    ("AuditLine", " of `mdfsck audit`"),
    ("AdviceLine", " of `mdfsck advise`"),
    ("ComparisonLine", " of `mdfsck compare-dbcc`"),
    ("EventLine", " of `mdfsck events`"),
    ("CheckpointsLine", " of `mdfsck checkpoints`"),
    ("ExplainLine", " of `mdfsck explain`"),
    ("ExportLine", " of `mdfsck export`"),
    ("HistoryLine", " of `mdfsck history`"),
    ("PartsLine", " of `mdfsck plan` and `merge`"),
    ("WatchLine", " of `mdfsck watch`"),
];

impl<T: JsonSchema> JsonSchema for Named<'_, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}

fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<AnyLine>().to_value();
    let fields = schema.as_object_mut().unwrap();
    fields.insert("title".to_owned(), json!("A line of mdfsck's JSON output"));
    let description =
        "As this version writes it. Later ones may add fields and kinds: readers ignore those that they do not know.";
    fields.insert("description".to_owned(), json!(description));
    schema
}

/// The tables of docs/json.md: one for each kind of line, then one for each type of a field.
fn tables(schema: &Value) -> String {
    let types = schema["$defs"].as_object().unwrap();
    let mut named = Vec::new();
    for (lines, of) in KINDS_OF_LINES {
        for line in types[lines]["oneOf"].as_array().unwrap() {
            named.push((name_of(line), format!("`{}`{of}", line["properties"]["kind"]["const"].as_str().unwrap())));
        }
    }
    // The `error` line is the same for every command, so the docs have only one table for it, without a command's name.
    named.retain(|(name, title)| *name != "ErrorText" || !title.contains("mdfsck"));
    for name in ["Media", "Chains"] {
        let kind = &types[name]["properties"]["kind"]["enum"][0];
        named.push((name, format!("`{}`", kind.as_str().unwrap())));
    }
    let mut out = String::new();
    for (name, title) in &named {
        table(&mut out, &format!("Line {title}"), &types[*name]);
    }
    let is_line = |name: &str| {
        named.iter().any(|(line, _)| *line == name) || KINDS_OF_LINES.iter().any(|(lines, _)| *lines == name)
    };
    for (name, fields) in types.iter().filter(|(name, fields)| !is_line(name) && fields["properties"].is_object()) {
        table(&mut out, name, fields);
    }
    out
}

fn table(out: &mut String, title: &str, of: &Value) {
    let described = one_line(&of["description"]);
    let required: Vec<&str> = of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    write!(out, "\n### {title}\n\n{described}\n\n| field | type | meaning |\n|---|---|---|\n").unwrap();
    for (name, field) in of["properties"].as_object().into_iter().flatten() {
        let absent = if required.contains(&name.as_str()) { "" } else { ", may be absent" };
        assert!(field["description"].is_string(), "{title}: {name} has no description");
        writeln!(out, "| `{name}` | {}{absent} | {} |", type_of(field), one_line(&field["description"])).unwrap();
    }
}

fn one_line(description: &Value) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The type's name in a reference such as `"$ref": "#/$defs/name"`.
fn name_of(reference: &Value) -> &str {
    reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap()
}

fn type_of(field: &Value) -> String {
    if field["$ref"].is_string() {
        let name = name_of(field);
        return match name {
            // The type `Page` is also a line, so the link goes to the table of that line.
            "Page" => "[Page](#line-page)".to_owned(),
            "Evidence" => "number, string or [Owner](#owner)".to_owned(),
            "EventValue" => "number, string or boolean".to_owned(),
            _ => format!("[{name}](#{})", name.to_lowercase()),
        };
    }
    if let Some(choices) = field["anyOf"].as_array() {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("array of {}", type_of(&field["items"])),
        "object" => format!("object of {}", type_of(&field["additionalProperties"])),
        other => other.to_owned(),
    };
    match &field["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" or "),
        _ => panic!("no type: {field}"),
    }
}

/// Compares a file in docs with the text generated from the types. If MDFSCK_WRITE_DOCS is set, writes the file first.
fn compare(name: &str, expected: &str) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name);
    if env::var_os("MDFSCK_WRITE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "{name} is not what the types of the lines make of it: MDFSCK_WRITE_DOCS=1 cargo test -p mdfsck-report schema"
    );
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    compare("docs/json.schema.json", &format!("{:#}\n", schema()));
}

#[test]
fn the_published_tables_are_those_of_the_types() {
    const MARK: &str = "<!-- From here on written from the types of the lines. -->\n";
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md")).unwrap();
    let (by_hand, _) = page.split_once(MARK).unwrap();
    compare("docs/json.md", &format!("{by_hand}{MARK}{}", tables(&schema())));
}

#[test]
fn every_type_of_the_lines_has_a_name_of_its_own() {
    // If two types had the same name, the schema would append a number to the name.
    let schema = schema();
    let types: &Map<String, Value> = schema["$defs"].as_object().unwrap();
    let numbered: Vec<_> = types.keys().filter(|name| name.ends_with(|last: char| last.is_ascii_digit())).collect();
    assert!(numbered.is_empty(), "{numbered:?}");
}
