//! The phases of a run, in words.

/// Descriptions of phases.
const PHASES: [(&str, &str); 14] = [
    ("spool", "copying standard input"),
    ("carve", "looking for pages"),
    ("load", "reading the catalog"),
    ("search", "looking for the catalog in all pages"),
    ("recover", "looking for changes in the log"),
    ("survey", "reading allocation maps"),
    ("sweep", "reading pages"),
    ("merge", "merging what was read"),
    ("compare", "comparing indexes with tables"),
    ("catalog", "checking the catalog"),
    ("constraints", "checking constraints"),
    ("export", "exporting rows"),
    ("salvage", "looking for rows of damaged pages"),
    ("container", "checking the rest of the backup"),
];

/// The description of a phase, or its name if it has none.
pub fn phase_words(name: &'static str) -> &'static str {
    PHASES.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}

/// The static name of a phase, for [`phase_words`]; `None` if there is no phase with this name.
pub fn phase_named(name: &str) -> Option<&'static str> {
    PHASES.iter().find(|(known, _)| *known == name).map(|(known, _)| *known)
}
