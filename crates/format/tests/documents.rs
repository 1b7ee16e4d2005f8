//! Tests that the documents agree with the code: the tables of offsets are generated from the catalog of fields, and
//! every citation of a document has a target.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use format::fields::{Count, Field, Kind, Place, Structure, Width};

/// The environment variable that makes the test rewrite the generated tables instead of comparing them.
const WRITE: &str = "MDFSCK_WRITE_DOCS";
/// The start of the line before a generated table; `END` is the line after the table.
const BEGIN: &str = "<!-- fields: ";
const END: &str = "<!-- end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files below `folder` that have one of these extensions.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !name.starts_with('.') && name != "target" {
            found.extend(files(&path, extensions));
        } else if kind.is_file() && extensions.iter().any(|extension| name.ends_with(extension)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The meaning of a field, with the names of its bits or values.
fn meaning(field: &Field) -> String {
    let names: Vec<String> = match field.kind {
        Kind::Flags(names) => names.iter().map(|(bit, name)| format!("0x{bit:X} {name}")).collect(),
        Kind::Named(names) => names.iter().map(|(value, name)| format!("{value} {name}")).collect(),
        _ => return field.meaning.to_owned(),
    };
    format!("{} ({})", field.meaning, names.join(", "))
}

fn reads_as(kind: Kind) -> &'static str {
    match kind {
        Kind::Unsigned | Kind::Named(_) => "unsigned",
        Kind::Hex => "hex",
        Kind::Flags(_) => "bits",
        Kind::PageType => "page type",
        Kind::PagePointer => "page pointer",
        Kind::RecordPointer => "RID",
        Kind::Lsn => "LSN",
        Kind::DateTime => "datetime",
        Kind::Guid => "GUID",
        Kind::Text => "UTF-16",
        Kind::DatabaseVersion => "database version",
        Kind::EngineBuild => "u16 build, u8 minor, u8 major",
        Kind::RecordStatus | Kind::CdStatus => "status byte",
        Kind::EndOffset => "end offset",
        Kind::SlotOffset => "page offset",
        Kind::PfsBytes => "one byte per page",
        Kind::ExtentBits => "one bit per extent",
        Kind::NullBits => "one bit per column",
        Kind::ColumnCodes => "four bits per column",
        Kind::Zero => "zero",
        Kind::Bytes => "bytes",
    }
}

fn offset(place: Place) -> String {
    match place {
        Place::At(at) if at < 10 => at.to_string(),
        Place::At(at) => format!("{at} (0x{at:X})"),
        Place::Each { first, stride, count: Count::Times(times) } => format!("{first} + {stride} k, {times} times"),
        Place::Each { first, stride, count: Count::Given } => format!("{first} + {stride} k"),
        Place::FromPageEnd => "8190 - 2 k".to_owned(),
        Place::Part(part) => part.text().to_owned(),
        Place::Column(position) => format!("variable column {position}"),
    }
}

/// Formats the fields of a structure as a Markdown table.
fn table(structure: Structure) -> String {
    let mut text =
        String::from("| offset | bytes | field | reads as | meaning | checked by |\n|---|---|---|---|---|---|\n");
    for field in structure.fields() {
        let bytes = match field.width {
            Width::Bytes(bytes) => bytes.to_string(),
            Width::Bits(bits) => (bits / 8).to_string(),
            Width::Varies => "varies".to_owned(),
        };
        let messages = field.checked_by.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let (offset, reads_as) = (offset(field.place), reads_as(field.kind));
        let meaning = meaning(field).replace('|', "\\|");
        text += &format!("| {offset} | {bytes} | {} | {reads_as} | {meaning} | {messages} |\n", field.name);
    }
    text
}

/// Regenerates the tables of a document. Returns the new text, and the structures whose tables it contains.
fn with_tables(document: &str) -> (String, Vec<Structure>) {
    let (mut text, mut structures, mut is_in_table) = (String::new(), Vec::new(), false);
    for line in document.lines() {
        if let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            let structure = Structure::ALL.into_iter().find(|structure| format!("{structure:?}") == name);
            let structure = structure.unwrap_or_else(|| panic!("no structure {name}"));
            text += &format!("{line}\n{}", table(structure));
            structures.push(structure);
            is_in_table = true;
        } else if !is_in_table || line == END {
            text += &format!("{line}\n");
            is_in_table = false;
        }
    }
    (text, structures)
}

#[test]
fn tables_of_offsets_are_those_of_the_catalog_of_fields_and_each_structure_has_one() {
    let mut shown: BTreeMap<Structure, PathBuf> = BTreeMap::new();
    for path in files(&root().join("docs/format"), &[".md"]) {
        let document = fs::read_to_string(&path).unwrap();
        let (expected, structures) = with_tables(&document);
        for structure in structures {
            let other = shown.insert(structure, path.clone());
            assert!(other.is_none(), "{structure:?} is in {} and {}", other.unwrap().display(), path.display());
        }
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, &expected).unwrap();
        } else {
            let stale = "is out of date: MDFSCK_WRITE_DOCS=1 cargo test -p mdfsck-format --test documents";
            assert!(document == expected, "{} {stale}", path.display());
        }
    }
    let missing: Vec<_> = Structure::ALL.into_iter().filter(|structure| !shown.contains_key(structure)).collect();
    assert!(missing.is_empty(), "no page of docs/format has a table of {missing:?}");
}

/// The anchors of the headings of a document, as GitHub and renderers with GitHub's rules generate them.
fn anchors(document: &str) -> BTreeSet<String> {
    let (mut anchors, mut is_code) = (BTreeSet::new(), false);
    for line in document.lines() {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let title = title.trim().to_lowercase();
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        anchors.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
    }
    anchors
}

/// The anchors of each document that was read so far; `None` for a file that does not exist.
#[derive(Default)]
struct Targets(BTreeMap<PathBuf, Option<BTreeSet<String>>>);

impl Targets {
    /// The reason why a citation of `path` and `anchor` has no target; `None` if the target exists.
    fn fault(&mut self, path: &Path, anchor: Option<&str>) -> Option<&'static str> {
        let found = self.0.entry(path.to_owned()).or_insert_with(|| {
            let is_document = path.extension().is_some_and(|extension| extension == "md");
            let document = if is_document { fs::read_to_string(path).ok() } else { None };
            document.map(|document| anchors(&document)).or_else(|| path.exists().then(BTreeSet::new))
        });
        match (found, anchor) {
            (None, _) => Some("no such file"),
            (Some(anchors), Some(anchor)) if !anchors.contains(anchor) => Some("no such heading"),
            _ => None,
        }
    }
}

/// Splits `path/of/document.md#anchor` into path and anchor.
fn split(citation: &str) -> (&str, Option<&str>) {
    citation.split_once('#').map_or((citation, None), |(path, anchor)| (path, Some(anchor)))
}

/// The citations of documents in a text, with the anchor of a heading if the citation has one:
/// `docs/format/lob.md#data`.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |letter: char| letter.is_ascii_alphanumeric() || "/-_.".contains(letter);
    text.match_indices(".md").filter_map(move |(at, extension)| {
        let start = text[..at].trim_end_matches(is_path).len();
        let end = at + extension.len();
        let anchor = text[end..].strip_prefix('#').unwrap_or_default();
        let anchor = anchor.len() - anchor.trim_start_matches(|letter: char| is_path(letter) && letter != '.').len();
        let citation = &text[start..if anchor == 0 { end } else { end + 1 + anchor }];
        let is_whole = start < at && !text[end..].starts_with(|letter: char| letter.is_ascii_alphanumeric());
        is_whole.then(|| citation.trim_start_matches(['.', '/']))
    })
}

/// The targets of the links in a Markdown document. Links inside of code are ignored.
fn links(document: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let (mut is_code, mut rest) = (false, document);
    while let Some(at) = rest.find(['`', ']']) {
        let (found, after) = rest[at..].split_at(1);
        rest = after;
        is_code ^= found == "`";
        let link = rest.strip_prefix('(').and_then(|link| link.split_once(')'));
        if let Some((link, after)) = link.filter(|_| found == "]" && !is_code) {
            links.push(link);
            rest = after;
        }
    }
    links
}

/// Resolves `.` and `..` in a path without access to the file system.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_heading() {
    let (mut targets, mut faults, mut count) = (Targets::default(), Vec::new(), 0);
    for path in files(&root(), &[".md"]) {
        let document = fs::read_to_string(&path).unwrap();
        for link in links(&document).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            count += 1;
            let (file, anchor) = split(link);
            let target = if file.is_empty() { path.clone() } else { plain(&path.parent().unwrap().join(file)) };
            if let Some(fault) = targets.fault(&target, anchor) {
                faults.push(format!("{}: {link}: {fault}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "{count} links");
}

#[test]
fn citations_and_links_are_found_where_they_stand() {
    let text = "see docs/format/lob.md#row-overflow). (A.md.) \"/../../docs/x.md\" a/b.md# c.mdf .md d.md,";
    let found = ["docs/format/lob.md#row-overflow", "A.md", "docs/x.md", "a/b.md", "d.md"];
    assert_eq!(citations(text).collect::<Vec<_>>(), found);
    let text = "[one](a.md#b) `[none](c.md)` [two](https://x/y) plain ] and (not) [three](#d)";
    assert_eq!(links(text), ["a.md#b", "https://x/y", "#d"]);
    let anchors = anchors("# One (1:9), two\n## `x_y`: a-b\ntext # no\n```\n# code\n```\n#no\n");
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["one-19-two", "x_y-a-b"]);
}

#[test]
fn every_citation_in_the_code_leads_to_a_document_and_a_heading() {
    let (root, mut targets, mut faults, mut count) = (root(), Targets::default(), Vec::new(), 0);
    let mut follow = |place: &str, citation: &str| {
        let (file, anchor) = split(citation);
        count += usize::from(file.starts_with("docs/format/"));
        if let Some(fault) = targets.fault(&root.join(file), anchor) {
            faults.push(format!("{place}: {citation}: {fault}"));
        }
    };
    let this = Path::new(file!()).file_name().unwrap();
    for path in files(&root, &[".rs", ".toml", ".tsv"]).into_iter().filter(|path| !path.ends_with(this)) {
        let text = fs::read_to_string(&path).unwrap();
        citations(&text).for_each(|citation| follow(&path.display().to_string(), citation));
    }
    format::fields::all().for_each(|field| follow(field.name, field.reference));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 250, "{count} citations of docs/format: are they looked for where they are?");
}

#[test]
fn a_field_cites_the_page_that_has_its_table() {
    for field in format::fields::all() {
        let (file, _) = split(field.reference);
        let (_, structures) = with_tables(&fs::read_to_string(root().join(file)).unwrap());
        assert!(structures.contains(&field.structure), "{file} has no table of {:?}", field.structure);
    }
}
