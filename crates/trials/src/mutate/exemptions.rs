//! The published list of fields whose damage may go unnoticed, with reasons.

/// The list as a tab-separated table with the columns `structure`, `fields` and `reason`.
const EXEMPTIONS: &str = include_str!("../../tests/matrix/exemptions.tsv");

/// Fields whose damage may go unnoticed.
#[derive(Clone, Debug)]
pub struct Exemption {
    /// A pattern for the name of the structure.
    pub structure: &'static str,
    /// Patterns for the names of the fields.
    pub fields: Vec<&'static str>,
    /// The reason why damage to these fields may go unnoticed.
    pub reason: &'static str,
}

impl Exemption {
    /// Whether the exemption applies to fields of this structure.
    pub fn is_of(&self, structure: &str) -> bool {
        matches(self.structure, structure)
    }

    /// Whether the exemption covers this field.
    pub fn covers(&self, structure: &str, field: &str) -> bool {
        self.is_of(structure) && self.fields.iter().any(|pattern| matches(pattern, field))
    }
}

/// Whether a pattern matches a name. A pattern is a whole name, or the start of a name followed by `*`.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// All exemptions of the list.
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
