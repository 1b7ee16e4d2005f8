//! The states of one page in the allocation maps.

use format::PageId;
use format::allocation::PfsByte;

/// The states of a page in the allocation maps. A state is `None` if its map cannot be read.
#[derive(Clone, Default, Debug)]
pub struct Allocation {
    /// The PFS page for this page, and the page's byte in it.
    pub pfs: Option<(PageId, u8)>,
    /// The GAM page, and the extent's bit in it: set = free.
    pub gam: Option<(PageId, bool)>,
    /// The SGAM page, and the extent's bit in it: set = mixed extent with free pages.
    pub sgam: Option<(PageId, bool)>,
    /// The differential map page, and the extent's bit in it: set = changed.
    pub diff: Option<(PageId, bool)>,
    /// The minimally logged map page, and the extent's bit in it: set = minimally logged.
    pub ml: Option<(PageId, bool)>,
    /// A description of the page's owner.
    pub owner: Option<String>,
}

impl Allocation {
    /// For each map: its name, the address of the map page, and the state of the dumped page.
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

/// A byte of a PFS page as text, in the words of DBCC PAGE.
pub(super) fn pfs_text(byte: u8) -> String {
    let byte = PfsByte(byte);
    let text = if byte.is_allocated() { "" } else { "NOT ALLOCATED " };
    format!("{text}{}", byte.flags_text())
}
