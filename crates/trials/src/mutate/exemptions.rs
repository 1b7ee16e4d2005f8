//! The published list of fields whose damage may go unnoticed, and why.

/// `structure`, `fields` and `reason`, a line each.
const EXEMPTIONS: &str = include_str!("../../tests/matrix/exemptions.tsv");

/// Fields whose damage may go unnoticed.
#[derive(Clone, Debug)]
pub struct Exemption {
    /// Pattern of the structure's name.
    pub structure: &'static str,
    /// Patterns of the fields' names.
    pub fields: Vec<&'static str>,
    /// Why damage to them need not be noticed.
    pub reason: &'static str,
}

impl Exemption {
    /// Whether it is about fields of this structure.
    pub fn is_of(&self, structure: &str) -> bool {
        matches(self.structure, structure)
    }

    /// Whether it includes this field.
    pub fn covers(&self, structure: &str, field: &str) -> bool {
        self.is_of(structure) && self.fields.iter().any(|pattern| matches(pattern, field))
    }
}

/// Whether a pattern matches a name: the pattern is the name itself, or the start of the name followed by `*`.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// The list.
pub fn exemptions() -> Vec<Exemption> {
    let lines = EXEMPTIONS.lines().skip(1);
    lines
        .filter_map(|line| {
            let mut parts = line.split('\t');
            let (structure, fields, reason) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Exemption { structure, fields: fields.split("; ").collect(), reason })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_is_an_exemption_with_a_reason() {
        let lines = EXEMPTIONS.lines().skip(1).filter(|line| !line.is_empty()).count();
        let list = exemptions();
        assert_eq!(list.len(), lines);
        assert!(list.iter().all(|exemption| !exemption.reason.is_empty() && !exemption.fields.is_empty()));
    }

    #[test]
    fn a_pattern_covers_what_begins_like_it() {
        let exemption = Exemption { structure: "page header*", fields: vec!["m_lsn", "dbi_*"], reason: "" };
        assert!(exemption.covers("page header, heap page", "m_lsn") && exemption.covers("page header", "dbi_x"));
        assert!(!exemption.covers("boot record", "m_lsn") && !exemption.covers("page header", "m_lsn2"));
    }
}
