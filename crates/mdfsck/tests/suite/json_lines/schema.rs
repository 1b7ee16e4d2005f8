//! Validates a value against a schema. The validation is stricter than that of a reader: a field that the schema does
//! not name is an error here, although readers must ignore unknown fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The schema in docs/json.schema.json.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn published() -> Self {
        let text = include_str!("../../../../../docs/json.schema.json");
        Self(serde_json::from_str(text).expect("the published schema is JSON"))
    }

    /// Validates a JSON line against the schema, and returns the errors.
    pub(crate) fn errors(&self, line: &Value) -> Vec<String> {
        self.closed(&self.0, line, "").err().unwrap_or_default()
    }

    /// The kinds of lines that the schema defines.
    pub(crate) fn kinds(&self) -> BTreeSet<&str> {
        let types = &self.0["$defs"];
        let tagged = [
            "Line",
            "ComparisonLine",
            "LogLine",
            "EventLine",
            "CheckpointsLine",
            "ExplainLine",
            "HistoryLine",
            "PartsLine",
        ]
        .into_iter()
        .flat_map(|lines| types[lines]["oneOf"].as_array());
        let tagged = tagged.flatten().filter_map(|line| line["properties"]["kind"]["const"].as_str());
        let others = ["Media", "Chains"].map(|name| types[name]["properties"]["kind"]["enum"][0].as_str());
        tagged.chain(others.into_iter().flatten()).collect()
    }

    /// Validates a value. If the value is an object, every field of it must be named in the schema.
    fn closed(&self, schema: &Value, value: &Value, at: &str) -> Result<(), Vec<String>> {
        let known = self.open(schema, value, at)?;
        let unknown = value.as_object().into_iter().flat_map(Map::keys).filter(|name| !known.contains(*name));
        let errors: Vec<_> = unknown.map(|name| format!("{at}/{name}: unknown field")).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Validates a value, and allows fields that the schema does not name. Returns the fields that the schema names.
    fn open<'a>(&'a self, schema: &'a Value, value: &'a Value, at: &str) -> Result<BTreeSet<&'a String>, Vec<String>> {
        let mut known = BTreeSet::new();
        let error = |what: &str| Err(vec![format!("{at}: {value} {what}")]);
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            let list = || rule.as_array().expect("a list");
            match keyword.as_str() {
                "$ref" => {
                    let name = rule.as_str().and_then(|path| path.rsplit('/').next()).expect("a type");
                    known.extend(self.open(&self.0["$defs"][name], value, at)?);
                }
                "anyOf" | "oneOf" => known.extend(self.one_of(list(), value, at)?),
                "type" => {
                    let fits = |name: &Value| is_of_type(value, name.as_str().unwrap_or_default());
                    if !rule.as_array().map_or_else(|| fits(rule), |names| names.iter().any(fits)) {
                        return error(&format!("is not of type {rule}"));
                    }
                }
                "const" if rule != value => return error(&format!("is not {rule}")),
                "enum" if !list().contains(value) => return error(&format!("is none of {rule}")),
                "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => return error("is too small"),
                "maximum" if value.is_number() && value.as_f64() > rule.as_f64() => return error("is too large"),
                "minItems"
                    if value.as_array().is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap_or(0)) =>
                {
                    return error("has too few items");
                }
                "maxItems" if value.as_array().is_some_and(|items| items.len() as u64 > rule.as_u64().unwrap_or(0)) => {
                    return error("has too many items");
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.closed(rule, item, &format!("{at}/{number}"))?;
                    }
                }
                "properties" => {
                    for (name, field) in rule.as_object().into_iter().flatten() {
                        known.insert(name);
                        if let Some(value) = value.get(name) {
                            self.closed(field, value, &format!("{at}/{name}"))?;
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        known.insert(name);
                        self.closed(rule, value, &format!("{at}/{name}"))?;
                    }
                }
                "required" => {
                    let missing = |name: &&Value| value.get(name.as_str().unwrap_or_default()).is_none();
                    if let Some(name) = value.as_object().and_then(|_| list().iter().find(missing)) {
                        return Err(vec![format!("{at}/{name}: missing field")]);
                    }
                }
                "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
                "title" | "description" | "format" | "$schema" | "$defs" => {}
                other => panic!("{other}: the schema has a keyword that this test does not know"),
            }
        }
        Ok(known)
    }

    /// Finds the first choice that the value matches, and returns the fields that this choice names. If the value
    /// matches no choice, returns the errors of all choices.
    fn one_of<'a>(
        &'a self,
        choices: &'a [Value],
        value: &'a Value,
        at: &str,
    ) -> Result<BTreeSet<&'a String>, Vec<String>> {
        let mut errors = Vec::new();
        for choice in choices {
            match self.open(choice, value, at) {
                Ok(known) => return Ok(known),
                Err(more) => errors.extend(more),
            }
        }
        // A choice for another kind of line reports only that the kind is wrong. This error is left out if there are
        // other errors.
        let of_its_kind = |error: &String| !error.starts_with(&format!("{at}/kind:"));
        let (its_kind, others): (Vec<_>, Vec<_>) = errors.into_iter().partition(of_its_kind);
        Err(if its_kind.is_empty() { others } else { its_kind })
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("{name}: the schema has a type that this test does not know"),
    }
}
