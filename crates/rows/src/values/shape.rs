//! Converts geometry and geography to WKB. The result has the standard form without a spatial reference ID, which
//! `STAsBinary` and `AsBinaryZM` also return ([MS-SSCLRT] 2.1; docs/format/other-features.md#spatial).

use format::bytes::u32_at;

const HAS_Z: u8 = 0x1;
const HAS_M: u8 = 0x2;
const IS_POINT: u8 = 0x8;
const IS_LINE: u8 = 0x10;
const HEADER_BYTES: usize = 6;
const FIGURE_BYTES: usize = 5;
const SHAPE_BYTES: usize = 9;

/// Kinds of shapes, which have the same numbers in WKB. Higher numbers are curves and the full globe.
mod kind {
    pub(super) const POINT: u8 = 1;
    pub(super) const LINE: u8 = 2;
    pub(super) const POLYGON: u8 = 3;
    pub(super) const MULTI_POINT: u8 = 4;
    pub(super) const COLLECTION: u8 = 7;
}

/// The points of a value. The z and m coordinates are in separate arrays.
struct Points<'b> {
    /// x and y of each point; for geography, latitude and longitude.
    pairs: &'b [u8],
    z: Option<&'b [u8]>,
    m: Option<&'b [u8]>,
    is_geography: bool,
}

impl Points<'_> {
    /// Appends a point: x and y, then z and m if the value has them.
    fn put(&self, point: usize, into: &mut Vec<u8>) -> Option<()> {
        let pair = self.pairs.get(point.checked_mul(16)?..)?.get(..16)?;
        let (first, second) = pair.split_at(8);
        // geography stores latitude first; WKB has longitude first.
        let (x, y) = if self.is_geography { (second, first) } else { (first, second) };
        into.extend_from_slice(x);
        into.extend_from_slice(y);
        for axis in [self.z, self.m].into_iter().flatten() {
            into.extend_from_slice(axis.get(point.checked_mul(8)?..)?.get(..8)?);
        }
        Some(())
    }

    fn axes(&self) -> usize {
        2 + usize::from(self.z.is_some()) + usize::from(self.m.is_some())
    }

    fn put_head(&self, kind: u8, into: &mut Vec<u8>) {
        let dimensions = u32::from(self.z.is_some()) * 1000 + u32::from(self.m.is_some()) * 2000;
        into.push(1);
        into.extend_from_slice(&(u32::from(kind) + dimensions).to_le_bytes());
    }
}

/// The unread bytes of a value. They contain arrays that each start with a count.
struct Parts<'b> {
    bytes: &'b [u8],
}

impl<'b> Parts<'b> {
    /// Reads a count, then as many parts of `size` bytes each as the count states. Returns the count and the bytes of
    /// the parts; `None` if the value is too short.
    fn take(&mut self, size: usize) -> Option<(usize, &'b [u8])> {
        let count = u32_at(self.bytes, 0)? as usize;
        let rest = self.bytes.get(4..)?;
        let (parts, rest) = rest.split_at_checked(count.checked_mul(size)?)?;
        self.bytes = rest;
        Some((count, parts))
    }

    fn take_bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }
}

/// Appends the shape as WKB; `None` if WKB cannot express the shape, or if its storage format is undocumented.
pub(super) fn wkb(bytes: &[u8], is_geography: bool, into: &mut Vec<u8>) -> Option<()> {
    let &[version, properties] = bytes.get(4..HEADER_BYTES)? else { return None };
    if !(1..=2).contains(&version) {
        return None;
    }
    let mut parts = Parts { bytes: bytes.get(HEADER_BYTES..)? };
    let single = match properties & (IS_POINT | IS_LINE) {
        IS_POINT => Some((kind::POINT, 1)),
        IS_LINE => Some((kind::LINE, 2)),
        0 => None,
        _ => return None,
    };
    let count = match single {
        Some((_, count)) => count,
        None => {
            let count = u32_at(parts.bytes, 0)? as usize;
            parts.take_bytes(4)?;
            count
        }
    };
    let pairs = parts.take_bytes(count.checked_mul(16)?)?;
    let mut axis = |bit: u8| match properties & bit {
        0 => Some(None),
        _ => parts.take_bytes(count.checked_mul(8)?).map(Some),
    };
    let (z, m) = (axis(HAS_Z)?, axis(HAS_M)?);
    let points = Points { pairs, z, m, is_geography };
    match single {
        Some((kind, count)) => {
            points.put_head(kind, into);
            if kind == kind::LINE {
                into.extend_from_slice(&2_u32.to_le_bytes());
            }
            (0..count).try_for_each(|point| points.put(point, into))?;
        }
        None => {
            let (_, figures) = parts.take(FIGURE_BYTES)?;
            let (_, shapes) = parts.take(SHAPE_BYTES)?;
            let shapes = Shapes::of(figures, shapes, count)?;
            (0..shapes.shapes.len()).try_for_each(|shape| shapes.put(shape, &points, into))?;
        }
    }
    // Bytes that remain are curve segments, which are not converted.
    parts.bytes.is_empty().then_some(())
}

struct Shape {
    kind: u8,
    figures: std::ops::Range<usize>,
    children: u32,
}

struct Shapes {
    shapes: Vec<Shape>,
    /// The first point of each figure, then the number of all points.
    starts: Vec<usize>,
}

impl Shapes {
    /// Reads the shapes; `None` if they are inconsistent or contain curves. Each shape must come after its parent.
    fn of(figures: &[u8], shapes: &[u8], points: usize) -> Option<Self> {
        let mut starts: Vec<usize> = figures
            .chunks_exact(FIGURE_BYTES)
            .map(|figure| u32_at(figure, 1).map(|at| at as usize))
            .collect::<Option<_>>()?;
        starts.push(points);
        if !starts.is_sorted() {
            return None;
        }
        let count = starts.len() - 1;
        let mut all: Vec<Shape> = Vec::new();
        let mut path: Vec<usize> = Vec::new();
        // `ended` is the number of the last nonempty shape, and `begin` is the first figure of this shape. The last
        // figure of this shape is not known yet, nor are the last figures of the shapes after it.
        let (mut begin, mut ended) = (0, 0);
        for (number, shape) in shapes.chunks_exact(SHAPE_BYTES).enumerate() {
            let (parent, first) = (u32_at(shape, 0)?.cast_signed(), u32_at(shape, 4)?.cast_signed());
            let kind = *shape.last()?;
            if !(kind::POINT..=kind::COLLECTION).contains(&kind) {
                return None;
            }
            match usize::try_from(parent) {
                Err(_) if number == 0 && parent == -1 => {}
                Ok(parent) if number > 0 => {
                    while path.last().is_some_and(|last| *last != parent) {
                        path.pop();
                    }
                    let holder = all.get_mut(*path.last()?)?;
                    let fits = match holder.kind {
                        kind::COLLECTION => true,
                        multi => multi >= kind::MULTI_POINT && kind == multi - 3,
                    };
                    if !fits {
                        return None;
                    }
                    holder.children += 1;
                }
                _ => return None,
            }
            path.push(number);
            // An empty shape has no figures. The figures of any other shape end where the figures of the next nonempty
            // shape begin.
            let figures = match first {
                -1 => begin..begin,
                first => {
                    let first = usize::try_from(first).ok().filter(|first| (begin..=count).contains(first))?;
                    for before in all.get_mut(ended..).unwrap_or_default() {
                        before.figures.end = first.max(before.figures.start).min(before.figures.end);
                    }
                    (begin, ended) = (first, number);
                    first..count
                }
            };
            all.push(Shape { kind, figures, children: 0 });
        }
        (!all.is_empty()).then_some(Self { shapes: all, starts })
    }

    fn put(&self, number: usize, points: &Points<'_>, into: &mut Vec<u8>) -> Option<()> {
        let shape = self.shapes.get(number)?;
        points.put_head(shape.kind, into);
        match shape.kind {
            kind::POINT if shape.figures.is_empty() => {
                // In WKB an empty point has NaN coordinates.
                (0..points.axes()).for_each(|_| into.extend_from_slice(&f64::NAN.to_le_bytes()));
                Some(())
            }
            kind::POINT => match self.figure(shape.figures.start)? {
                range if range.len() == 1 && shape.figures.len() == 1 => points.put(range.start, into),
                _ => None,
            },
            kind::LINE if shape.figures.is_empty() => {
                into.extend_from_slice(&0_u32.to_le_bytes());
                Some(())
            }
            kind::LINE if shape.figures.len() == 1 => self.put_figure(shape.figures.start, points, into),
            kind::LINE => None,
            kind::POLYGON => {
                into.extend_from_slice(&u32::try_from(shape.figures.len()).ok()?.to_le_bytes());
                shape.figures.clone().try_for_each(|figure| self.put_figure(figure, points, into))
            }
            _ => {
                into.extend_from_slice(&shape.children.to_le_bytes());
                Some(())
            }
        }
    }

    fn figure(&self, figure: usize) -> Option<std::ops::Range<usize>> {
        Some(*self.starts.get(figure)?..*self.starts.get(figure + 1)?)
    }

    fn put_figure(&self, figure: usize, points: &Points<'_>, into: &mut Vec<u8>) -> Option<()> {
        let mut range = self.figure(figure)?;
        into.extend_from_slice(&u32::try_from(range.len()).ok()?.to_le_bytes());
        range.try_for_each(|point| points.put(point, into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], is_geography: bool) -> Option<Vec<u8>> {
        let mut into = Vec::new();
        wkb(bytes, is_geography, &mut into).map(|()| into)
    }

    fn doubles(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn a_point_of_geography_has_its_longitude_first() {
        let mut bytes = vec![0xE6, 0x10, 0, 0, 1, 0x0C];
        bytes.extend(doubles(&[47.6, -122.3]));
        let mut expected = vec![1, 1, 0, 0, 0];
        expected.extend(doubles(&[-122.3, 47.6]));
        assert_eq!(of(&bytes, true), Some(expected));
    }

    /// WKB must contain both rings of POLYGON ((0 0, 3 0, 0 3, 0 0), (1 1, 2 1, 1 2, 1 1)).
    #[test]
    fn a_polygon_has_its_rings() {
        let rings = doubles(&[0., 0., 3., 0., 0., 3., 0., 0., 1., 1., 2., 1., 1., 2., 1., 1.]);
        let mut bytes = vec![0, 0, 0, 0, 1, 4, 8, 0, 0, 0];
        bytes.extend(&rings);
        bytes.extend([2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
        bytes.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 3]);
        let mut expected = vec![1, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0];
        expected.extend(&rings[..64]);
        expected.extend([4, 0, 0, 0]);
        expected.extend(&rings[64..]);
        assert_eq!(of(&bytes, false), Some(expected));
    }

    /// WKB must nest the shapes of GEOMETRYCOLLECTION (POINT (1 2), MULTIPOINT ((3 4), (5 6)), LINESTRING EMPTY) in
    /// their parents. If a shape is a curve, the conversion must fail.
    #[test]
    fn shapes_stand_in_the_shape_that_holds_them() {
        let mut bytes = vec![0, 0, 0, 0, 1, 4, 3, 0, 0, 0];
        bytes.extend(doubles(&[1., 2., 3., 4., 5., 6.]));
        bytes.extend([3, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 2, 0, 0, 0]);
        bytes.extend(6_u32.to_le_bytes());
        for (parent, first, kind) in [(-1, 0, 7), (0, 0, 1), (0, 1, 4), (2, 1, 1), (2, 2, 1), (0, -1, 2_u8)] {
            bytes.extend(i32::to_le_bytes(parent));
            bytes.extend(i32::to_le_bytes(first));
            bytes.push(kind);
        }
        let point = |x: f64, y: f64| [vec![1, 1, 0, 0, 0], doubles(&[x, y])].concat();
        let expected = [
            vec![1, 7, 0, 0, 0, 3, 0, 0, 0],
            point(1., 2.),
            vec![1, 4, 0, 0, 0, 2, 0, 0, 0],
            point(3., 4.),
            point(5., 6.),
            vec![1, 2, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(of(&bytes, false), Some(expected.concat()));
        let curve = bytes.len() - 1;
        bytes[curve] = 8;
        assert_eq!(of(&bytes, false), None, "a circular string");
    }
}
