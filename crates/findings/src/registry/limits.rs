//! The limits: every reason why something is not verified. A limit is not a finding: the affected data may or may not
//! be sound.

use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use sums::wire::{Input, Output, SumsError, Wire};

use super::Basis;

pub use table::*;

#[path = "limits/table.rs"]
mod table;

/// The kind of reason why something is not verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LimitKind {
    /// Data that the check depends on is damaged or contradicts itself. A finding may report this damage.
    Damaged,
    /// The operating system could not read the data.
    Unreadable,
    /// Something is missing in the input: a file, a stripe, the log, a key, or space for temporary files.
    NotGiven,
    /// A change was under way when the files or the backup were written.
    InFlight,
    /// The format of the stored data is undocumented.
    Undocumented,
    /// This program does not make the check.
    Unsupported,
}

impl LimitKind {
    /// The name in the JSON field `kind_of`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Unreadable => "unreadable",
            Self::NotGiven => "not-given",
            Self::InFlight => "in-flight",
            Self::Undocumented => "undocumented",
            Self::Unsupported => "unsupported",
        }
    }
}

/// The mark of a limit: a property that some limits of a kind have and others do not. In the table of limits, the mark
/// follows the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The limit has no special property.
    None,
    /// The limit is only a note.
    Note,
    /// A file, a stripe or another complete part of the input is missing.
    Root,
    /// The data is missing for a reason other than a missing file or stripe.
    Apart,
}

/// One reason why something is not verified.
pub struct Limit {
    /// Stable id, never reused.
    pub id: &'static str,
    /// The kind of reason.
    pub kind: LimitKind,
    /// The property that distinguishes the limit from other limits of its kind.
    pub mark: Mark,
    /// The subject that is not verified: "key order", "pages".
    pub what: &'static str,
    /// Why the subject is not verified; `{}` is replaced with a value.
    pub reason: &'static str,
    /// The recommended action.
    pub action: &'static str,
}

/// Two limits differ if their ids differ.
impl std::hash::Hash for Limit {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl Limit {
    /// The limit whose id is `id`.
    pub fn find(id: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|limit| limit.id == id)
    }

    /// Whether the limit is only a note: it is worth knowing, but every requested check was made.
    pub fn is_note(&self) -> bool {
        self.mark == Mark::Note
    }

    /// Returns whether the limit says that a complete part of the input is missing, such as a data file. Other limits
    /// may be consequences of the missing part.
    pub fn is_root(&self) -> bool {
        self.mark == Mark::Root
    }

    /// Whether the limit may be a consequence of a missing part of the input.
    pub fn may_follow(&self) -> bool {
        let may = matches!(self.kind, LimitKind::Damaged | LimitKind::Unreadable | LimitKind::NotGiven);
        may && !matches!(self.mark, Mark::Root | Mark::Apart)
    }

    /// Whether the limit may prevent checks that compare `basis`.
    pub fn may_prevent(&self, basis: Basis) -> bool {
        match self.subject() {
            "references" | "broker" => basis == Basis::Catalog,
            "constraint" | "identity" => basis == Basis::Constraint,
            _ => true,
        }
    }

    /// Whether a part of the catalog could not be read.
    pub fn is_of_catalog(&self) -> bool {
        self.subject() == "catalog"
    }

    /// The first word of the id.
    fn subject(&self) -> &'static str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// The reason text, in which each `{}` is replaced by the next of `values`.
    pub fn with(&'static self, values: &[&dyn Display]) -> Reason {
        let mut parts = self.reason.split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut values = values.iter();
        for part in parts {
            if let Some(value) = values.next() {
                let _ = write!(text, "{value}");
            }
            text.push_str(part);
        }
        Reason { limit: self, text }
    }
}

impl PartialEq for Limit {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Limit {}

impl PartialOrd for Limit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Limit {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(other.id)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// A limit, and its reason text with the values filled in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reason {
    /// The text for users. It is the first field because reports sort by it.
    pub text: String,
    /// The limit.
    pub limit: &'static Limit,
}

impl Reason {
    /// Returns this reason, with `part` and a colon inserted before its text. `part`, such as `column C`, names what is
    /// affected in the place that the note is about.
    pub fn about(self, part: impl Display) -> Self {
        Self { text: format!("{part}: {}", self.text), ..self }
    }
}

impl From<&'static Limit> for Reason {
    fn from(limit: &'static Limit) -> Self {
        Self { limit, text: limit.reason.to_owned() }
    }
}

impl Wire for &'static Limit {
    fn write(&self, to: &mut Output<'_>) -> Result<(), SumsError> {
        self.id.to_owned().write(to)
    }

    fn read(from: &mut Input<'_>) -> Result<Self, SumsError> {
        let id = String::read(from)?;
        Limit::find(&id).ok_or_else(|| from.damaged("the id of a limit"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_limit_is_carried_by_its_id() {
        use sums::hash::FactHash;
        use sums::spill::TempStore;

        let (hash, space) = (FactHash::new(Some(5)), TempStore::new(None, 1 << 20));
        let written = |id: &str| {
            let mut bytes = Vec::new();
            let mut output = Output::new(&hash, b"head", &space, &mut bytes);
            id.to_owned().write(&mut output).unwrap();
            output.finish().unwrap();
            bytes
        };
        let read = |bytes: &[u8]| <&Limit>::read(&mut Input::new(&hash, b"head", (&space, 0), &mut &bytes[..]));
        let mut bytes = Vec::new();
        let mut output = Output::new(&hash, b"head", &space, &mut bytes);
        (&PAGES_UNREADABLE).write(&mut output).unwrap();
        output.finish().unwrap();
        assert_eq!(bytes, written(PAGES_UNREADABLE.id));
        assert_eq!(read(&bytes).unwrap(), &PAGES_UNREADABLE);
        assert!(read(&written("pages.of-no-kind")).is_err());
    }

    #[test]
    fn ids_are_unique_and_every_row_is_whole() {
        let mut ids = HashSet::new();
        for limit in ALL {
            assert!(ids.insert(limit.id), "{} twice", limit.id);
            assert!(crate::registry::Check::find(limit.id).is_empty(), "{} is the id of a check", limit.id);
            for text in [limit.what, limit.reason, limit.action] {
                assert!(!text.is_empty() && text.trim() == text, "{}: {text:?}", limit.id);
            }
            assert!(limit.action.ends_with('.') && !limit.reason.ends_with('.'), "{}", limit.id);
        }
    }

    /// Tests that code of some crate uses every limit, because the table must not list a limit that the program never
    /// notes. The constant of a limit is its ID in capital letters.
    #[test]
    fn every_limit_is_noted_somewhere() {
        let mut sources = String::new();
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut folders: Vec<_> =
            std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => sources.push_str(&std::fs::read_to_string(path).unwrap_or_default()),
                }
            }
        }
        let noted: HashSet<&str> = sources
            .split("limits::")
            .skip(1)
            .map(|rest| {
                rest.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).next().unwrap()
            })
            .collect();
        for limit in ALL {
            let name = limit.id.to_ascii_uppercase().replace(['.', '-'], "_");
            assert!(noted.contains(name.as_str()), "nothing notes {}", limit.id);
        }
    }

    #[test]
    fn a_reason_names_the_values_of_its_place() {
        let text = COUNTS_ROWS_FEWER.with(&[&3, &"5"]).about("dbo.T").text;
        assert!(text.starts_with("dbo.T: 3 rows were found, but the catalog counts 5"), "{text}");
    }
}
