//! Values of the types hierarchyid, geometry and geography.

use super::Sample;
use crate::plain::hex;

/// The forms in which Microsoft's library writes an ordinal of a hierarchyid. Each form consists of the smallest and
/// the largest ordinal that it can encode, and a pattern of bits. `x` is a bit of the difference between the ordinal
/// and the smallest ordinal. `T` is 1 if the level ends with this ordinal, or 0 if another ordinal of the level
/// follows.
const FORMS: [(i64, i64, &str); 9] = [
    (-4168, -73, "000110xxxxx0xxx0x1xxxT"),
    (-72, -9, "0010xx0x1xxxT"),
    (-8, -1, "00111xxxT"),
    (0, 3, "01xxT"),
    (4, 7, "100xxT"),
    (8, 15, "101xxxT"),
    (16, 79, "110xx0x1xxxT"),
    (80, 1103, "1110xxx0xxx0x1xxxT"),
    (1104, 5199, "11110xxxxx0xxx0x1xxxT"),
];

impl Sample {
    /// A hierarchyid from the ordinals of its levels: `[[1], [2, 5]]` gives `/1/2.5/`.
    pub(crate) fn hierarchyid(levels: &[&[i64]]) -> Self {
        let (mut bits, mut path) = (Vec::new(), "/".to_owned());
        for level in levels {
            for (at, &ordinal) in level.iter().enumerate() {
                let is_last = at + 1 == level.len();
                // An ordinal that is not the last one of its level is stored increased by one. So `2.5` sorts after `2`
                // and after everything below `2`.
                push_ordinal(if is_last { ordinal } else { ordinal + 1 }, is_last, &mut bits);
                path += &format!("{ordinal}{}", if is_last { "/" } else { "." });
            }
        }
        let byte = |bits: &[bool]| (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at) == Some(&true)));
        Self::made(bits.chunks(8).map(byte).collect(), path)
    }

    /// A geometry or geography with a single point.
    pub(crate) fn point(srid: u32, point: (f64, f64)) -> Self {
        let mut bytes = srid.to_le_bytes().to_vec();
        // Version 1, then the flags for a valid value and a single point.
        bytes.extend([1, 0x0C]);
        push_point(point, &mut bytes);
        let mut wkb = vec![1, 1, 0, 0, 0];
        push_point(on_map(srid, point), &mut wkb);
        Self::made(bytes, hex(&wkb))
    }

    /// A polygon from its rings, the outer ring first. Each ring must end at its first point.
    pub(crate) fn polygon(srid: u32, rings: &[&[(f64, f64)]]) -> Self {
        const OUTER: u8 = 2;
        const INNER: u8 = 0;
        let mut bytes = srid.to_le_bytes().to_vec();
        // Version 1, then the flag for a valid value.
        bytes.extend([1, 4]);
        let points: Vec<(f64, f64)> = rings.concat();
        push_count(points.len(), &mut bytes);
        points.iter().for_each(|&point| push_point(point, &mut bytes));
        push_count(rings.len(), &mut bytes);
        let mut first = 0;
        for (number, ring) in rings.iter().enumerate() {
            bytes.push(if number == 0 { OUTER } else { INNER });
            push_count(first, &mut bytes);
            first += ring.len();
        }
        // The value has one shape, which has no parent. The first figure of the shape is figure 0.
        push_count(1, &mut bytes);
        bytes.extend([0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 3]);
        let mut wkb = vec![1, 3, 0, 0, 0];
        push_count(rings.len(), &mut wkb);
        for ring in rings {
            push_count(ring.len(), &mut wkb);
            ring.iter().for_each(|&point| push_point(on_map(srid, point), &mut wkb));
        }
        Self::made(bytes, hex(&wkb))
    }

    /// A line through two or more points.
    pub(crate) fn line(srid: u32, points: &[(f64, f64)]) -> Self {
        let mut bytes = srid.to_le_bytes().to_vec();
        if let [from, to] = points {
            bytes.extend([1, 0x14]);
            push_point(*from, &mut bytes);
            push_point(*to, &mut bytes);
        } else {
            bytes.extend([1, 4]);
            push_count(points.len(), &mut bytes);
            points.iter().for_each(|&point| push_point(point, &mut bytes));
            // First the figures: one figure, a stroke whose first point is point 0. Then the shapes: one shape, a line
            // whose first figure is figure 0.
            bytes.extend([1, 0, 0, 0, 1, 0, 0, 0, 0]);
            bytes.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 2]);
        }
        let mut wkb = vec![1, 2, 0, 0, 0];
        push_count(points.len(), &mut wkb);
        points.iter().for_each(|&point| push_point(on_map(srid, point), &mut wkb));
        Self::made(bytes, hex(&wkb))
    }
}

fn push_ordinal(ordinal: i64, is_last: bool, bits: &mut Vec<bool>) {
    let Some((least, _, form)) = FORMS.iter().find(|(least, most, _)| (*least..=*most).contains(&ordinal)) else {
        return;
    };
    let mut left = form.bytes().filter(|&bit| bit == b'x').count();
    for bit in form.bytes() {
        bits.push(match bit {
            b'x' => {
                left -= 1;
                (ordinal - least) >> left & 1 == 1
            }
            b'T' => is_last,
            bit => bit == b'1',
        });
    }
}

/// Returns the two coordinates of a point in the order of WKB. A geography stores the latitude first, but WKB has the
/// longitude first.
fn on_map(srid: u32, (a, b): (f64, f64)) -> (f64, f64) {
    if srid == 0 { (a, b) } else { (b, a) }
}

fn push_point((x, y): (f64, f64), out: &mut Vec<u8>) {
    out.extend(x.to_le_bytes());
    out.extend(y.to_le_bytes());
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    out.extend((count as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_coded_as_published() {
        let bytes = |levels: &[&[i64]]| Sample::hierarchyid(levels).bytes;
        // Microsoft's documentation shows /1/ as 0x58 and /1/1/ as 0x5AC0.
        assert_eq!(bytes(&[&[1]]), Some(vec![0x58]));
        assert_eq!(bytes(&[&[1], &[1]]), Some(vec![0x5A, 0xC0]));
        assert_eq!(bytes(&[]), Some(vec![]));
        assert_eq!(Sample::hierarchyid(&[&[1], &[2, 5]]).text.as_deref(), Some("/1/2.5/"));
    }
}
