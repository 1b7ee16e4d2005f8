//! The metadata of the events in a file: packages with events, actions, maps and types.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use format::bytes::{u8_at, u16_at, u32_at, u64_at, utf16};

use super::package_of;
use crate::Moment;

/// Maximum number of bytes of metadata to read: far more than a server writes. In memory, metadata needs about ten
/// times as many bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of collections in a package. Servers write nine kinds of collections.
const MAX_COLLECTIONS: u32 = 1000;
/// The type number of a static value that is a text. A static value is constant for all events of one type. The next
/// constant is the type number of a static GUID. Static values of all other types have eight bytes.
const STATIC_TEXT: u32 = 15;
const STATIC_GUID: u32 = 16;

/// The clock of a package: the time at tick 0, and the number of ticks per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickClock {
    start: i64,
    frequency: u64,
}

impl TickClock {
    /// Converts `ticks` to a point in time. If the frequency is 0 (unknown), a tick is 100 ns. `None` if the number
    /// overflows.
    pub(super) fn moment(self, ticks: u64) -> Option<Moment> {
        let passed = match self.frequency {
            0 => u128::from(ticks),
            frequency => u128::from(ticks) * 10_000_000 / u128::from(frequency),
        };
        self.start.checked_add(i64::try_from(passed).ok()?).map(Moment)
    }
}

/// Name and fields of an event.
#[derive(Debug)]
pub(super) struct EventType {
    pub(super) name: Arc<str>,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    /// ID of the field's type or map.
    pub(super) type_id: u32,
    /// Offset of the field in the event.
    pub(super) offset: usize,
}

#[derive(Debug)]
pub(super) struct Action {
    pub(super) name: Arc<str>,
    pub(super) type_id: u32,
}

/// A map: the texts for the codes that a value can have.
#[derive(Debug)]
pub(super) struct Map {
    /// Size of a code, in bytes.
    pub(super) bytes: usize,
    /// Whether each bit of a code has its own text.
    pub(super) is_bits: bool,
    pub(super) texts: BTreeMap<u32, Arc<str>>,
}

/// The contents of all packages in a file, by object ID.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    packages: HashMap<u32, (Arc<str>, TickClock)>,
    pub(super) events: HashMap<u32, Arc<EventType>>,
    pub(super) actions: HashMap<u32, Action>,
    pub(super) maps: HashMap<u32, Map>,
    /// Size of each type in bytes; 0 for variable length.
    pub(super) types: HashMap<u32, usize>,
    bytes: u64,
}

impl Metadata {
    /// Reads a buffer of packages. A later object with the same ID replaces an earlier one.
    ///
    /// # Errors
    /// The offset in `data` of the invalid bytes, and the reason.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), (usize, &'static str)> {
        let mut at = 0;
        while at < data.len() {
            let rest = data.get(at..).unwrap_or_default();
            // A package begins with these fields: u16 version, u32 size, GUID, ten bytes, u64 start time, u64 ticks per
            // second.
            let bytes = u32_at(rest, 2).unwrap_or_default() as usize;
            let Some(package) = rest.get(..bytes).filter(|package| package.len() >= 48) else {
                return Err((at, "a package of the metadata does not fit in its buffer"));
            };
            self.bytes = self.bytes.saturating_add(bytes as u64);
            if self.bytes > MAX_BYTES {
                return Err((at, "the file has more metadata than any server writes"));
            }
            let mut cursor = Cursor { bytes: package, at: 0 };
            if self.package(&mut cursor).is_none() {
                return Err((at + cursor.at, "a package of the metadata ends too early"));
            }
            at += bytes;
        }
        Ok(())
    }

    /// Name and clock of the package that an object belongs to.
    pub(super) fn package_name(&self, id: u32) -> Option<&(Arc<str>, TickClock)> {
        self.packages.get(&package_of(id))
    }

    fn package(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.skip(32)?;
        let clock = TickClock { start: cursor.u64()?.cast_signed(), frequency: cursor.u64()? };
        let header = cursor.object()?;
        // Skips two GUIDs and a version number.
        cursor.skip(34)?;
        let collections = cursor.u32().filter(|count| *count <= MAX_COLLECTIONS)?;
        cursor.skip(collections as usize * 12)?;
        self.packages.insert(package_of(header.id), (header.name, clock));
        for _ in 0..cursor.u32()? {
            self.event(cursor)?;
        }
        for _ in 0..cursor.u32()? {
            let header = cursor.object()?;
            let type_id = cursor.u32()?;
            cursor.skip(8)?;
            self.actions.insert(header.id, Action { name: header.name, type_id });
        }
        for _ in 0..cursor.u32()? {
            self.map(cursor)?;
        }
        for _ in 0..cursor.u32()? {
            let header = cursor.object()?;
            self.types.insert(header.id, cursor.u8()?.into());
        }
        Some(())
    }

    fn event(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let header = cursor.object()?;
        let (statics, customizable, fields) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
        cursor.skip(2)?;
        for _ in 0..statics {
            cursor.static_value()?;
            cursor.skip_text()?;
        }
        for _ in 0..customizable {
            cursor.static_value()?;
            cursor.skip(16)?;
            cursor.skip_text()?;
        }
        let field = |_| {
            let type_id = cursor.u32()?;
            let name = cursor.text()?;
            let offset = cursor.u16()?.into();
            cursor.skip(2)?;
            cursor.skip_text()?;
            Some(Field { name, type_id, offset })
        };
        let fields = (0..fields).map(field).collect::<Option<Vec<Field>>>()?;
        self.events.insert(header.id, Arc::new(EventType { name: header.name, fields }));
        Some(())
    }

    fn map(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let header = cursor.object()?;
        let (bytes, count) = (cursor.u8()?.into(), cursor.u16()?);
        let texts = (0..count).map(|_| Some((cursor.u32()?, cursor.text()?))).collect::<Option<_>>()?;
        self.maps.insert(header.id, Map { bytes, is_bits: header.capabilities & 1 != 0, texts });
        Some(())
    }
}

/// The fields at the start of each metadata object.
struct Object {
    id: u32,
    name: Arc<str>,
    capabilities: u8,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn u8(&mut self) -> Option<u8> {
        let value = u8_at(self.bytes, self.at)?;
        self.at += 1;
        Some(value)
    }

    fn u16(&mut self) -> Option<u16> {
        let value = u16_at(self.bytes, self.at)?;
        self.at += 2;
        Some(value)
    }

    fn u32(&mut self) -> Option<u32> {
        let value = u32_at(self.bytes, self.at)?;
        self.at += 4;
        Some(value)
    }

    fn u64(&mut self) -> Option<u64> {
        let value = u64_at(self.bytes, self.at)?;
        self.at += 8;
        Some(value)
    }

    /// Reads the bytes of a text, without the terminating zero character.
    fn text_bytes(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let units = rest.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0])?;
        self.skip(units * 2 + 2)?;
        rest.get(..units * 2)
    }

    fn skip_text(&mut self) -> Option<()> {
        self.text_bytes().map(|_| ())
    }

    fn text(&mut self) -> Option<Arc<str>> {
        self.text_bytes().map(|bytes| utf16(bytes).into())
    }

    /// Reads the fields at the start of an object: version, capabilities, ID, name and description.
    fn object(&mut self) -> Option<Object> {
        self.skip(3)?;
        let (capabilities, id) = (self.u8()?, self.u32()?);
        let name = self.text()?;
        self.skip_text()?;
        Some(Object { id, name, capabilities })
    }

    /// Skips a static value: the type, name and value of a column that is constant for all events of one type.
    fn static_value(&mut self) -> Option<()> {
        let type_id = self.u32()?;
        self.skip_text()?;
        match super::values::base_type(type_id) {
            Some(STATIC_TEXT) => self.skip_text(),
            Some(STATIC_GUID) => self.skip(16),
            _ => self.skip(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_time_by_the_clock_of_their_package() {
        let clock = |start, frequency| TickClock { start, frequency };
        assert_eq!(clock(100, 0).moment(5), Some(Moment(105)));
        assert_eq!(clock(0, 3_515_607).moment(3_515_607 * 10), Some(Moment(100_000_000)));
        assert_eq!(clock(0, 1).moment(u64::MAX), None);
        assert_eq!(clock(i64::MAX, 0).moment(1), None);
        assert_eq!(clock(i64::MIN, 0).moment(0), Some(Moment(i64::MIN)));
    }
}
