//! Geometry and geography values ([MS-SSCLRT] 2.1; format-rare.md 8).

use crate::bytes::{u8_at, u32_at};

/// Version and properties come behind the reference system's number.
const HEADER_BYTES: usize = 6;
const HAS_Z: u8 = 0x1;
const HAS_M: u8 = 0x2;
const IS_POINT: u8 = 0x8;
const IS_LINE: u8 = 0x10;
/// The version that knows arcs: kinds of segments follow the shapes.
const WITH_SEGMENTS: u8 = 2;

/// Whether the parts of a value add up to its length. What does not may be of a form that was never described.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    length(bytes) == Some(bytes.len())
}

/// The length that a value says it has.
fn length(bytes: &[u8]) -> Option<usize> {
    let (version, properties) = (u8_at(bytes, 4)?, u8_at(bytes, 5)?);
    if !(1..=WITH_SEGMENTS).contains(&version) {
        return None;
    }
    let point = 16 + 8 * usize::from(properties & HAS_Z != 0) + 8 * usize::from(properties & HAS_M != 0);
    match properties & (IS_POINT | IS_LINE) {
        IS_POINT => return Some(HEADER_BYTES + point),
        IS_LINE => return Some(HEADER_BYTES + 2 * point),
        0 => {}
        _ => return None,
    }
    // Points, figures (attribute, first point), shapes (parent, first figure, kind), each with their number in front.
    let part = |at: usize, size: usize| {
        let count = u32_at(bytes, at)? as usize;
        at.checked_add(4)?.checked_add(count.checked_mul(size)?)
    };
    let end = part(part(part(HEADER_BYTES, point)?, 5)?, 9)?;
    match version {
        WITH_SEGMENTS if end < bytes.len() => part(end, 1),
        _ => Some(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_met_in_a_real_file_is_whole() {
        let point = [
            0xE6, 0x10, 0, 0, 1, 0x0C, 0x2C, 0xB7, 0xB4, 0x1A, 0x12, 0xBB, 0x45, 0x40, 0xE8, 0xBC, 0xC6, 0x2E, 0x51,
            0x1B, 0x52, 0xC0,
        ];
        assert!(is_whole(&point));
        assert!(!is_whole(&point[..21]) && !is_whole(&[]));
        let mut other = point;
        other[4] = 3;
        assert!(!is_whole(&other), "a version nobody has described");
        other[4..6].copy_from_slice(&[1, 0x0D]);
        assert!(!is_whole(&other), "with Z");
    }

    #[test]
    fn parts_add_up() {
        // LINESTRING (0 0, 1 1, 2 2): three points, one figure, one shape.
        let mut line = vec![0, 0, 0, 0, 1, 4, 3, 0, 0, 0];
        line.extend([0; 48]);
        line.extend([1, 0, 0, 0, 1, 0, 0, 0, 0]);
        line.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 2]);
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
}
