//! Findings with message 2570: a value outside the domain of its type.

use findings::{Finding, registry};
use format::types::{TypeInfo, xtype};

/// The state of message 2570 if a value has an odd number of bytes, but its type has two bytes per character.
const HALF_A_CHARACTER: u8 = 2;

/// The finding for a value of a column of type `info`, without the address of the row.
pub(crate) fn impure(column: &str, info: TypeInfo) -> Finding {
    let finding = Finding::new(&registry::COLUMN_PURITY).text_value("column", column).text_value("type", info.name());
    match info.xtype {
        xtype::NCHAR | xtype::NVARCHAR | xtype::NTEXT => finding.state(HALF_A_CHARACTER),
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_says_whether_it_is_half_a_character() {
        let state = |xtype| impure("c", TypeInfo { xtype, ..TypeInfo::default() }).state;
        assert_eq!([xtype::NVARCHAR, xtype::NCHAR, xtype::NTEXT].map(state), [2; 3]);
        // Values of these types are reported with state 3: docs/format/cases.md#case-38.
        assert_eq!([xtype::DECIMAL, xtype::DATETIME, xtype::XML].map(state), [3; 3]);
    }
}
