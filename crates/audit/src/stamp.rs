//! Stores an LSN in ten bytes, to save memory: a table of millions of pages has three LSNs for each page.

use format::Lsn;

/// An LSN in ten bytes that sort in the order of LSNs. The default value means that there is no record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Stamp([u8; 10]);

impl From<Lsn> for Stamp {
    fn from(lsn: Lsn) -> Self {
        let ([a, b, c, d], [e, f, g, h], [i, j]) =
            (lsn.vlf.to_be_bytes(), lsn.block.to_be_bytes(), lsn.slot.to_be_bytes());
        Self([a, b, c, d, e, f, g, h, i, j])
    }
}

impl From<Stamp> for Lsn {
    fn from(Stamp([a, b, c, d, e, f, g, h, i, j]): Stamp) -> Self {
        Self {
            vlf: u32::from_be_bytes([a, b, c, d]),
            block: u32::from_be_bytes([e, f, g, h]),
            slot: u16::from_be_bytes([i, j]),
        }
    }
}

impl Stamp {
    /// Whether the stamp is the default value, which means that there is no record.
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_in_the_order_of_lsns() {
        let lsns = [(1, 0x200, 3), (1, 0x201, 1), (2, 1, 0x102), (2, 1, 0x201), (0x0100_0000, 1, 1)];
        let lsns = lsns.map(|(vlf, block, slot)| Lsn { vlf, block, slot });
        assert!(lsns.is_sorted() && lsns.map(Stamp::from).is_sorted());
        assert_eq!(lsns.map(Stamp::from).map(Lsn::from), lsns);
        assert!(Stamp::default().is_none() && !Stamp::from(lsns[0]).is_none());
    }
}
