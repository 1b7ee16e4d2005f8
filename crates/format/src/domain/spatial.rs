//! Geometry and geography values ([MS-SSCLRT] 2.1; docs/format/other-features.md#spatial).

use crate::bytes::u32_at;

/// The length of the header in bytes: the number of the reference system (4), the version (1) and the properties (1).
const HEADER_BYTES: usize = 6;
const HAS_Z: u8 = 0x1;
const HAS_M: u8 = 0x2;
const IS_POINT: u8 = 0x8;
const IS_LINE: u8 = 0x10;
/// The version of values that may contain arcs. In these values, the kinds of the segments follow the shapes.
const WITH_SEGMENTS: u8 = 2;

/// Whether the lengths of a value's parts add up to its length. If they do not, the value may have an undocumented
/// form.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let mut parts = Parts::default();
    parts.add(bytes);
    parts.are_whole()
}

/// Adds up the lengths of the parts of a value that arrives in pieces. The value is not kept.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Parts {
    /// The number of bytes that have arrived so far.
    length: u64,
    /// The end of all parts with a known length.
    end: u64,
    follows: Follows,
    /// The first bytes of the next part. Possibly, only some of these bytes have arrived.
    held: [u8; HEADER_BYTES],
    held_bytes: usize,
}

/// The next part of a value. A count precedes the points, the figures (attribute, first point), the shapes (parent,
/// first figure, kind) and the segments.
#[derive(Clone, Copy, Default, Debug)]
enum Follows {
    #[default]
    Header,
    Points {
        bytes: u64,
        version: u8,
    },
    Figures {
        version: u8,
    },
    Shapes {
        version: u8,
    },
    /// The optional last part.
    Segments,
    Nothing,
    /// The form of the value is undocumented.
    Unknown,
}

impl Parts {
    /// Adds the next piece of the value.
    pub(super) fn add(&mut self, piece: &[u8]) {
        loop {
            let wanted = match self.follows {
                Follows::Header => HEADER_BYTES,
                Follows::Nothing | Follows::Unknown => break,
                _ => 4,
            };
            let skipped = self.end + self.held_bytes as u64 - self.length;
            let rest = usize::try_from(skipped).ok().and_then(|skipped| piece.get(skipped..)).unwrap_or_default();
            let room = self.held.get_mut(self.held_bytes..wanted).unwrap_or_default();
            room.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.held_bytes += room.len().min(rest.len());
            if self.held_bytes < wanted {
                break;
            }
            self.step();
        }
        self.length += piece.len() as u64;
    }

    /// Reads the start of the next part: the header, or the count of elements.
    fn step(&mut self) {
        let count = u64::from(u32_at(&self.held, 0).unwrap_or_default());
        let (bytes, follows) = match self.follows {
            Follows::Header => header(&self.held),
            Follows::Points { bytes, version } => (4 + count * bytes, Follows::Figures { version }),
            Follows::Figures { version } => (4 + count * 5, Follows::Shapes { version }),
            Follows::Shapes { version: WITH_SEGMENTS } => (4 + count * 9, Follows::Segments),
            Follows::Shapes { .. } => (4 + count * 9, Follows::Nothing),
            Follows::Segments => (4 + count, Follows::Nothing),
            Follows::Nothing | Follows::Unknown => return,
        };
        (self.end, self.follows, self.held_bytes) = (self.end + bytes, follows, 0);
    }

    /// Whether the value has a documented form so far.
    pub(super) fn may_be_whole(&self) -> bool {
        !matches!(self.follows, Follows::Unknown)
    }

    /// Whether the pieces so far form the whole value.
    pub(super) fn are_whole(&self) -> bool {
        matches!(self.follows, Follows::Segments | Follows::Nothing) && self.length == self.end
    }
}

/// Returns the length in bytes of the header, including the points directly after it if the value is a single point or
/// line segment. Also returns the part that follows.
fn header(bytes: &[u8; HEADER_BYTES]) -> (u64, Follows) {
    let [.., version, properties] = *bytes;
    let point = 16 + 8 * u64::from(properties & HAS_Z != 0) + 8 * u64::from(properties & HAS_M != 0);
    match properties & (IS_POINT | IS_LINE) {
        _ if !(1..=WITH_SEGMENTS).contains(&version) => (0, Follows::Unknown),
        IS_POINT => (HEADER_BYTES as u64 + point, Follows::Nothing),
        IS_LINE => (HEADER_BYTES as u64 + 2 * point, Follows::Nothing),
        0 => (HEADER_BYTES as u64, Follows::Points { bytes: point, version }),
        _ => (0, Follows::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_real_file_is_whole() {
        let point = [
            0xE6, 0x10, 0, 0, 1, 0x0C, 0x2C, 0xB7, 0xB4, 0x1A, 0x12, 0xBB, 0x45, 0x40, 0xE8, 0xBC, 0xC6, 0x2E, 0x51,
            0x1B, 0x52, 0xC0,
        ];
        assert!(is_whole(&point));
        assert!(!is_whole(&point[..21]) && !is_whole(&[]));
        let mut other = point;
        other[4] = 3;
        assert!(!is_whole(&other), "an undocumented version");
        other[4..6].copy_from_slice(&[1, 0x0D]);
        assert!(!is_whole(&other), "with Z");
    }

    /// LINESTRING (0 0, 1 1, 2 2): three points, one figure, one shape.
    fn line(version: u8) -> Vec<u8> {
        let mut line = vec![0, 0, 0, 0, version, 4, 3, 0, 0, 0];
        line.extend([0; 48]);
        line.extend([1, 0, 0, 0, 1, 0, 0, 0, 0]);
        line.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 2]);
        line
    }

    #[test]
    fn parts_add_up() {
        let mut line = line(1);
        assert!(is_whole(&line));
        line[4] = 2;
        assert!(is_whole(&line));
        line.extend([2, 0, 0, 0, 2, 2]);
        assert!(is_whole(&line), "two segments");
        line[6] = 0xFF;
        assert!(!is_whole(&line));
        line[6..10].fill(0xFF);
        assert!(!is_whole(&line));
    }

    #[test]
    fn pieces_of_any_length_equal_the_whole() {
        let mut line = line(2);
        line.extend([2, 0, 0, 0, 2, 2]);
        for length in 1..line.len() {
            let mut parts = Parts::default();
            for (at, piece) in line.chunks(length).enumerate() {
                assert_eq!(parts.are_whole(), at * length == line.len() - 6, "{at} pieces of {length}");
                parts.add(piece);
            }
            assert!(parts.are_whole(), "pieces of {length}");
            parts.add(&[0]);
            assert!(!parts.are_whole(), "a byte too many");
        }
    }
}
