//! What the allocation maps say about one page.

use format::PageId;
use format::allocation::PfsByte;

/// What the allocation maps say about a page. Every part is optional: a map may be unreadable.
#[derive(Clone, Default, Debug)]
pub struct Allocation {
    /// The PFS page that describes it, and its byte.
    pub pfs: Option<(PageId, u8)>,
    /// The GAM page, and the extent's bit: set = free.
    pub gam: Option<(PageId, bool)>,
    /// The SGAM page, and the bit: set = mixed with room.
    pub sgam: Option<(PageId, bool)>,
    /// The differential map, and the bit: set = changed.
    pub diff: Option<(PageId, bool)>,
    /// The minimally logged map, and the bit: set = minimally logged.
    pub ml: Option<(PageId, bool)>,
    /// A description of its owner.
    pub owner: Option<String>,
}

impl Allocation {
    /// Each map, its page, and what it says.
    pub(super) fn states(&self) -> Vec<(&'static str, PageId, String)> {
        let mut states = Vec::new();
        if let Some((map, byte)) = self.pfs {
            states.push(("PFS", map, format!("0x{byte:02X} {}", pfs_text(byte))));
        }
        for (name, state, set, clear) in [
            ("GAM", self.gam, "NOT ALLOCATED", "ALLOCATED"),
            ("SGAM", self.sgam, "ALLOCATED", "NOT ALLOCATED"),
            ("DIFF", self.diff, "CHANGED", "NOT CHANGED"),
            ("ML", self.ml, "MIN_LOGGED", "NOT MIN_LOGGED"),
        ] {
            if let Some((map, is_set)) = state {
                states.push((name, map, if is_set { set } else { clear }.to_owned()));
            }
        }
        states
    }
}

/// A byte of a PFS page, in DBCC PAGE's words.
pub(super) fn pfs_text(byte: u8) -> String {
    let byte = PfsByte(byte);
    let text = if byte.is_allocated() { "" } else { "NOT ALLOCATED " };
    format!("{text}{}", byte.flags_text())
}
