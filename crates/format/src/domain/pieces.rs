//! Checks values that arrive in pieces. Keeps only the bytes that decide whether the value is in its domain.

use super::{Domain, spatial};

/// The maximum number of bytes that are kept. If the domain of a type depends on every byte of a value, values of this
/// type have at most 65,535 bytes after a header of 8 bytes.
const MOST_KEPT_BYTES: usize = (1 << 16) + 8;
/// The length of an XML document's signature and version, in bytes.
const XML_BYTES: usize = 3;

/// A value that arrives piece by piece.
#[derive(Clone, Debug)]
pub struct Pieces {
    domain: Domain,
    /// The parts seen so far, if the domain is spatial.
    parts: spatial::Parts,
    /// The bytes kept so far, for all other domains.
    kept: Vec<u8>,
    is_cut: bool,
}

impl Pieces {
    /// An empty value of `domain`.
    pub fn of(domain: Domain) -> Self {
        Self { domain, parts: spatial::Parts::default(), kept: Vec::new(), is_cut: false }
    }

    /// Adds the next piece. Returns whether later pieces can change the result.
    pub fn add(&mut self, piece: &[u8]) -> bool {
        let most = match self.domain {
            Domain::Spatial => {
                self.parts.add(piece);
                return self.parts.may_be_whole();
            }
            Domain::Xml | Domain::CompressibleXml => XML_BYTES,
            _ => MOST_KEPT_BYTES,
        };
        let taken = piece.len().min(most - self.kept.len());
        self.kept.extend(piece.iter().take(taken));
        self.is_cut |= taken < piece.len();
        !self.is_cut
    }

    /// Whether the pieces form a value of the domain, as in [`Domain::contains`].
    pub fn are_value(&self) -> Option<bool> {
        match self.domain {
            Domain::Spatial => self.parts.are_whole().then_some(true),
            Domain::Xml | Domain::CompressibleXml => self.domain.contains(&self.kept),
            domain => domain.contains(&self.kept).filter(|_| !self.is_cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::xtype;

    fn judged(domain: Domain, bytes: &[u8], length: usize) -> Option<bool> {
        let mut pieces = Pieces::of(domain);
        // A caller that adds further pieces after `add` returned false gets the same answer.
        for piece in bytes.chunks(length) {
            pieces.add(piece);
        }
        pieces.are_value()
    }

    #[test]
    fn pieces_give_the_same_answer_as_the_whole_value() {
        let point = [[0xE6, 0x10, 0, 0, 1, 0x0C].as_slice(), &[0; 16]].concat();
        let mut text = vec![xtype::NVARCHAR, 1, 0x40, 0x1F, 0, 0, 0, 0];
        text.extend([b'a', 0].repeat(4000));
        let number = vec![xtype::INT, 1, 7, 0, 0, 0];
        let document = [[0xDF, 0xFF, 1, 0xB0, 4].as_slice(), &[7; 100_000]].concat();
        for (domain, value) in [
            (Domain::Spatial, point),
            (Domain::Variant, text),
            (Domain::Variant, number),
            (Domain::Xml, document.clone()),
            (Domain::CompressibleXml, document),
        ] {
            for length in [1, 2, 5, 8000] {
                assert_eq!(judged(domain, &value, length), domain.contains(&value), "{domain:?} by {length}");
                assert_eq!(judged(domain, &value[1..], length), domain.contains(&value[1..]), "{domain:?} by {length}");
            }
        }
    }

    #[test]
    fn nothing_is_kept_of_a_shape_however_long() {
        // A line with four million points, which takes 64 MB.
        let points = 4_000_000u32;
        let mut shape = Pieces::of(Domain::Spatial);
        assert!(shape.add(&[0xE6, 0x10, 0, 0, 1, 4]));
        assert!(shape.add(&points.to_le_bytes()));
        for _ in 0..points / 500 {
            assert_eq!(shape.are_value(), None);
            assert!(shape.add(&[0; 500 * 16]));
        }
        shape.add(&[1, 0, 0, 0, 1, 0, 0, 0, 0]);
        shape.add(&[1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 2]);
        assert_eq!((shape.are_value(), shape.kept.capacity()), (Some(true), 0));
    }

    #[test]
    fn a_variant_longer_than_any_is_undecided() {
        let mut text = vec![xtype::VARCHAR, 1, 0xFF, 0xFF, 0, 0, 0, 0];
        text.extend(vec![b'a'; 65_535]);
        assert_eq!(judged(Domain::Variant, &text, 8000), Some(true));
        text.extend(vec![b'a'; 1_000_000]);
        assert_eq!((judged(Domain::Variant, &text, 8000), Domain::Variant.contains(&text)), (None, None));
        // The piece that fills the buffer need not be the last piece. An empty piece changes nothing.
        let mut pieces = Pieces::of(Domain::Variant);
        assert!(pieces.add(&text[..MOST_KEPT_BYTES]));
        assert!(!pieces.add(&text[MOST_KEPT_BYTES..]) && !pieces.add(&[]));
        assert_eq!(pieces.are_value(), None);
    }
}
