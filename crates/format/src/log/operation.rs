//! The operations of log records, with their numbers (docs/format/log.md#operations).

use std::fmt;

/// The number of a log record's operation. Any number may occur; a number without a name here is an unknown operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Operation(pub u8);

/// The first number of operations on transactions, checkpoints and the server's memory. Lower numbers are operations on
/// pages.
const FIRST_WITHOUT_PAGE: u8 = 128;

/// Defines the known operations. The names are SQL Server's, as fn_dblog prints them, without `LOP_`.
macro_rules! operations {
    ($($number:literal $name:ident $(on $page:ident)?: $meaning:literal;)*) => {
        impl Operation {
            $(#[doc = $meaning] pub const $name: Self = Self($number);)*

            /// SQL Server's name for the operation; `None` for an unknown operation.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// Whether records of this operation name the page that they change. All known operations below 128 do. The
            /// result is also true for unknown operations below 128, although their change to the page is unknown.
            pub fn is_on_a_page(self) -> bool {
                match self.0 {
                    $($number => operations!(@on $($page)?),)*
                    unknown => (1..FIRST_WITHOUT_PAGE).contains(&unknown),
                }
            }
        }
    };
    (@on) => { false };
    (@on page) => { true };
}

operations! {
    1 FORMAT_PAGE on page: "A page is made anew.";
    2 INSERT_ROWS on page: "Rows are inserted.";
    3 DELETE_ROWS on page: "A row is deleted, or becomes a ghost.";
    4 MODIFY_ROW on page: "Bytes of a row are replaced.";
    5 MODIFY_HEADER on page: "Bytes of a page header are replaced.";
    6 MODIFY_COLUMNS on page: "Several pieces of a row are replaced.";
    7 SET_BITS on page: "Bits of an allocation map are set or cleared.";
    10 SET_FREE_SPACE on page: "A byte of a PFS page is replaced.";
    11 DELETE_SPLIT on page: "Rows that moved to another page are dropped.";
    13 EXPUNGE_ROWS on page: "A ghost is removed.";
    16 FILE_HDR_MODIFY on page: "The record of a file header is replaced.";
    17 SET_GAM_BITS on page: "Several pieces of an allocation map are replaced.";
    18 COUNT_DELTA on page: "Counters of the catalog are set.";
    19 ROOT_CHANGE on page: "A page pointer of an allocation unit is replaced.";
    22 INSYSXACT on page: "A page takes part in a change of structure.";
    126 PAGE_OPERATION_126 on page: "Changes the LSN of a page; its purpose is unknown.";
    128 BEGIN_XACT: "A transaction begins.";
    129 COMMIT_XACT: "A transaction commits.";
    130 ABORT_XACT: "A transaction has been rolled back.";
    131 PREP_XACT: "A transaction over several databases is prepared.";
    132 MARK_SAVEPOINT: "A savepoint.";
    133 FORGET_XACT: "A prepared transaction is forgotten.";
    137 HOBT_DDL: "Bookkeeping in memory.";
    140 HOBT_DELTA: "Bookkeeping in memory.";
    141 LOCK_XACT: "Locks to take again after recovery.";
    148 VERSION_STEP: "A step of an upgrade to another version.";
    150 BEGIN_CKPT: "A checkpoint begins.";
    152 XACT_CKPT: "Transactions that were open at a checkpoint.";
    153 END_CKPT: "A checkpoint ends.";
    154 BUF_WRITE: "Pages that a bulk operation wrote without logging their contents.";
    176 CREATE_ALLOCCHAIN: "A new allocation chain.";
    211 SHRINK_NOOP: "A filler.";
}

impl fmt::Display for Operation {
    /// Prints the name, or `OPERATION_` and the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "OPERATION_{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_below_128_name_a_page_and_no_others() {
        for number in 1..=u8::MAX {
            assert_eq!(Operation(number).is_on_a_page(), number < 128, "{}", Operation(number));
        }
        assert!(!Operation(0).is_on_a_page());
        assert_eq!(Operation(250).to_string(), "OPERATION_250");
        assert_eq!(Operation::END_CKPT.to_string(), "END_CKPT");
    }
}
