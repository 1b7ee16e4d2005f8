//! File names for tables. Every file system accepts them, and they are unique.

use std::collections::BTreeMap;

use catalog::Database;

/// The maximum length of a name without its extension, in bytes. File systems accept 255 bytes with the extension.
const MOST_BYTES: usize = 180;
/// Suffixes of the additional files that an export may write for a table.
const OTHER_FILES: [&str; 3] = [".unreadable", ".doubtful", ".rebuilt"];
/// Names that Windows reserves for devices.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Returns a file name without extension, such as `dbo.Orders`, for each object ID. The name of an object depends on
/// the other names in `objects`. So pass all objects of the database: then a table gets the same name regardless of
/// which tables are exported.
pub fn stems(database: &Database, objects: &[i32]) -> BTreeMap<i32, String> {
    let full = |id: i32| match database.objects.get(&id) {
        Some(object) => format!("{}.{}", database.schema_name(object), object.name),
        None => format!("object.{id}"),
    };
    of_names(objects.iter().map(|id| (*id, full(*id))))
}

fn of_names(names: impl Iterator<Item = (i32, String)>) -> BTreeMap<i32, String> {
    let stems: Vec<(i32, String)> = names.map(|(id, name)| (id, safe(&name))).collect();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (_, stem) in &stems {
        *count.entry(folded(stem)).or_default() += 1;
    }
    let is_alone = |stem: &str| {
        let folded = folded(stem);
        count.get(&folded) == Some(&1) && !OTHER_FILES.iter().any(|end| folded.ends_with(end))
    };
    // Safe names never contain `~`, so appending `~` and the object ID makes the name unique.
    stems
        .into_iter()
        .map(|(id, stem)| if is_alone(&stem) { (id, stem) } else { (id, format!("{stem}~{id}")) })
        .collect()
}

/// Returns one text for all names that differ only in case, because some file systems do not distinguish these names.
fn folded(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

/// Whether a file system may replace the character by one or more other characters. This is possible for Korean letters
/// that combine to a syllable, and for characters that exist only for compatibility with older code pages.
fn is_of_two_forms(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11FF}' | '\u{F900}'..='\u{FAFF}' | '\u{2F800}'..='\u{2FA1F}')
}

/// The name with `_` in place of each character that a file system may refuse or read as part of a path.
fn safe(name: &str) -> String {
    let is_letter = |c: char| c.is_alphanumeric() && !is_of_two_forms(c);
    let is_plain = |c: char| is_letter(c) || matches!(c, '.' | '_' | '-' | ' ' | '$' | '#' | '@' | '(' | ')');
    let mut safe: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut end = safe.len().min(MOST_BYTES);
    while !safe.is_char_boundary(end) {
        end -= 1;
    }
    safe.truncate(end);
    let first = safe.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let is_port = matches!(first.get(..3), Some("com" | "lpt")) && first.chars().count() == 4;
    if DEVICES.contains(&first.as_str()) || is_port || safe.starts_with(['.', ' ', '-']) || safe.is_empty() {
        safe.insert(0, '_');
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_climbs_a_path_or_is_a_device() {
        for (name, expected) in [
            ("dbo.Orders", "dbo.Orders"),
            ("dbo.Order Details", "dbo.Order Details"),
            ("dbo.../../etc/passwd", "dbo..._.._etc_passwd"),
            ("..\\x.y", "_.._x.y"),
            ("con.t", "_con.t"),
            ("COM1.t", "_COM1.t"),
            ("Lpt\u{B9}.t", "_Lpt\u{B9}.t"),
            ("nul .t", "_nul .t"),
            ("conin$.t", "_conin$.t"),
            ("company.t", "company.t"),
            ("dbo.\u{1112}\u{1161}\u{11AB}", "dbo.___"),
            ("dbo.a\0b\nc", "dbo.a_b_c"),
            ("-rf.x", "_-rf.x"),
            ("dbo.Größe", "dbo.Größe"),
        ] {
            assert_eq!(safe(name), expected);
        }
        assert!(safe(&"ß".repeat(128)).len() <= MOST_BYTES);
    }

    #[test]
    fn a_table_named_as_the_second_file_of_another_has_a_name_of_its_own() {
        let names = [(1, "dbo.a"), (2, "dbo.a.Unreadable")].map(|(id, name)| (id, name.to_owned()));
        let stems = of_names(names.into_iter());
        assert_eq!(stems.values().map(String::as_str).collect::<Vec<_>>(), ["dbo.a", "dbo.a.Unreadable~2"]);
    }

    #[test]
    fn names_that_a_file_system_takes_for_the_same_get_their_object_ids() {
        let stems = |names: &[&str]| -> Vec<String> {
            of_names((1..).zip(names.iter().map(|name| (*name).to_owned()))).into_values().collect()
        };
        assert_eq!(stems(&["dbo.a/b", "dbo.A?B", "dbo.c"]), ["dbo.a_b~1", "dbo.A_B~2", "dbo.c"]);
        assert_eq!(stems(&["a.straße", "a.STRASSE"]), ["a.straße~1", "a.STRASSE~2"]);
        assert_eq!(stems(&["a.\u{212A}", "a.k", "a.é", "a.e\u{301}"]), ["a.\u{212A}~1", "a.k~2", "a.é", "a.e_"]);
        let long = "x".repeat(300);
        let ends = [format!("{long}1"), format!("{long}2")];
        let cut = "x".repeat(MOST_BYTES);
        assert_eq!(stems(&[&ends[0], &ends[1]]), [format!("{cut}~1"), format!("{cut}~2")]);
    }
}
