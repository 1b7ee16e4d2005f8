//! Compares rows that are expanded together with the same rows audited and expanded one by one.

mod heads;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::compressed::{CompressedColumn, Scratch};
use crate::page::{HEADER_BYTES, PAGE_BYTES};
use crate::same_shape::SameShapeRows;
use crate::types::{TypeInfo, fixed_length, xtype};

/// The descriptor of a value (half a byte), and the bytes stored for the value.
type Stored = (u8, Vec<u8>);

const SYMBOL: u8 = 12;

fn half_byte_of(bytes: &[u8]) -> u8 {
    if bytes.len() <= 8 { bytes.len() as u8 + 1 } else { 10 }
}

/// Builds a compressed record.
fn record(status: u8, values: &[Stored]) -> Vec<u8> {
    let is_long = |(half, _): &&Stored| *half == 10;
    let long: Vec<&[u8]> = values.iter().filter(is_long).map(|(_, value)| value.as_slice()).collect();
    let mut bytes = vec![status | if long.is_empty() { 0 } else { 0x20 }];
    match values.len() {
        count @ 0..128 => bytes.push(count as u8),
        count => bytes.extend([0x80 | (count >> 8) as u8, count as u8]),
    }
    bytes.extend(values.chunks(2).map(|pair| pair[0].0 | pair.get(1).map_or(0, |(half, _)| half << 4)));
    let leading = values.len().saturating_sub(1) / 30;
    let of_short = |values: &[Stored]| -> Vec<u8> {
        values.iter().filter(|value| !is_long(value)).flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    bytes.extend(values.chunks(30).take(leading).map(|cluster| of_short(cluster).len() as u8));
    bytes.extend(of_short(values));
    if !long.is_empty() {
        bytes.push(1);
        bytes.extend((long.len() as u16).to_le_bytes());
        let mut end = 0;
        for value in &long {
            end += value.len() as u16;
            bytes.extend(end.to_le_bytes());
        }
        bytes.extend(values.chunks(30).take(leading).map(|cluster| cluster.iter().filter(is_long).count() as u8));
        bytes.extend(long.concat());
    }
    if status & 2 != 0 {
        bytes.extend([7; 14]);
    }
    bytes
}

/// Builds compression information with this anchor and this dictionary.
fn information(anchor: &[Stored], entries: &[Vec<u8>]) -> Vec<u8> {
    let anchor = record(1, anchor);
    let mut bytes = vec![0x06, 0, 0];
    bytes.extend((7 + anchor.len() as u16).to_le_bytes());
    let mut dictionary = (entries.len() as u16).to_le_bytes().to_vec();
    let mut end = 2 + 2 * entries.len();
    for entry in entries {
        end += entry.len();
        dictionary.extend((end as u16).to_le_bytes());
    }
    dictionary.extend(entries.concat());
    let size = bytes.len() + 2 + anchor.len() + dictionary.len();
    bytes.extend((size as u16).to_le_bytes());
    [bytes, anchor, dictionary].concat()
}

/// A value to store in a column, with a random choice of its encoding.
fn value() -> impl Strategy<Value = (u8, Vec<u8>, Index)> {
    (0u8..16, prop::collection::vec(prop_oneof![any::<u8>(), 0x40u8..0x7B, 0x80u8..0x84], 0..14), any::<Index>())
}

const KINDS: [u8; 22] = [
    xtype::TINYINT,
    xtype::SMALLINT,
    xtype::INT,
    xtype::BIGINT,
    xtype::MONEY,
    xtype::DATETIME,
    xtype::SMALLDATETIME,
    xtype::BIT,
    xtype::REAL,
    xtype::FLOAT,
    xtype::DECIMAL,
    xtype::NUMERIC,
    xtype::CHAR,
    xtype::NCHAR,
    xtype::BINARY,
    xtype::VARCHAR,
    xtype::NVARCHAR,
    xtype::VARBINARY,
    xtype::DATE,
    xtype::DATETIME2,
    xtype::UNIQUEIDENTIFIER,
    xtype::TIMESTAMP,
];

fn column(kind: u8, is_uniquifier: bool) -> Option<CompressedColumn> {
    let mut info = TypeInfo { xtype: kind, length: 20, precision: 18, scale: 2 };
    info.length = fixed_length(info).unwrap_or(20);
    Some(CompressedColumn { info, is_uniquifier: is_uniquifier && kind == xtype::INT })
}

/// The stored form of the value on a page with this anchor.
fn stored((choice, bytes, index): &(u8, Vec<u8>, Index), anchor: Option<&Stored>, entries: usize) -> Stored {
    match choice {
        0 => (0, Vec::new()),
        1 => (1, Vec::new()),
        2 if entries > 0 => (SYMBOL, vec![index.index(entries) as u8]),
        3 => (11, Vec::new()),
        _ => {
            let mut bytes = bytes.clone();
            // Mostly a prefix length that the anchor allows, in one byte or in two; sometimes a random length, or one
            // byte more than the anchor has.
            if let (Some((1.., anchor)), Some(first)) = (anchor, bytes.first().copied()) {
                let shared = index.index(anchor.len() + 1) as u8;
                let length = match choice {
                    4 => &[first][..],
                    5 => &[0x80, shared],
                    6 => &[anchor.len() as u8 + 1],
                    _ => &[shared],
                };
                bytes.splice(..1, length.iter().copied());
            }
            (half_byte_of(&bytes), bytes)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    #[ignore = "full tier: takes seconds"]
    fn rows_expanded_together_are_those_expanded_one_by_one(
        kinds in prop::collection::vec((select(&KINDS[..]), any::<bool>()), 1..40),
        anchor in prop::option::of(prop::collection::vec(value(), 40)),
        entries in prop::collection::vec(prop::collection::vec(0u8..0x84, 0..10), 0..4),
        rows in prop::collection::vec((select(&[0x01u8, 0x01, 0x01, 0x03, 0x0D, 0x11, 0x19, 0x1D][..]), prop::collection::vec(value(), 40), 0usize..3), 1..6),
        damage in prop::option::of((any::<Index>(), any::<u8>())),
        fewer in any::<Index>(),
    ) {
        let columns: Vec<_> = kinds.iter().map(|(kind, is_uniquifier)| column(*kind, *is_uniquifier)).collect();
        let expansion = Expansion::new(&columns).unwrap();
        let anchors: Vec<Stored> = anchor.iter().flatten().take(columns.len()).map(|value| stored(value, None, 0)).collect();
        let information = information(&anchors, &entries);
        let info = anchor.is_some().then(|| CompressionInfo::read(&information, columns.len()).unwrap());
        // The compression information is before the first record, as on any page.
        let (mut page, mut spaces) = ([&[0xA5; HEADER_BYTES][..], &information].concat(), Vec::new());
        let first_record = page.len();
        for (status, values, absent) in &rows {
            let count = columns.len().saturating_sub(*absent).max(1);
            let entries = if info.is_some() { entries.len() } else { 0 };
            let values: Vec<Stored> = values.iter().take(count).enumerate()
                .map(|(at, value)| stored(value, anchors.get(at), entries)).collect();
            let start = page.len();
            page.extend(record(*status, &values));
            spaces.push(start..page.len());
        }
        if let Some((at, byte)) = damage {
            let at = first_record + at.index(page.len() - first_record);
            page[at] = byte;
        }
        page.resize(PAGE_BYTES, 0x5A);
        let page: &PageBytes = page.as_slice().try_into().unwrap();
        let of_page = expansion.of_page(info.as_ref());
        let (mut together, mut scratch) = (ExpandedPage::default(), Scratch::default());
        let mut sound = Vec::new();
        for space in spaces {
            let expected = one_by_one(page, &space, &expansion, info.as_ref(), &mut scratch);
            let found = images(&mut together, page, std::slice::from_ref(&space), &of_page);
            prop_assert_eq!(found, expected.as_ref().map(|(image, kind, length, _)| vec![(image.clone(), *kind, *length)]));
            sound.extend(expected.map(|row| (space, row)));
        }
        // For a rowset with fewer columns, the layouts of these records must not be used.
        let fewer = Expansion::new(&columns[..fewer.index(columns.len())]).unwrap();
        let fewer = fewer.of_page(info.as_ref());
        for (space, _) in &sound {
            let [known, unknown] = [&mut together, &mut ExpandedPage::default()]
                .map(|expanded| images(expanded, page, std::slice::from_ref(space), &fewer));
            prop_assert_eq!(known, unknown);
        }
        // The rows are repeated until they fill several lots.
        let longest = sound.iter().map(|(_, (image, ..))| image.len()).max().unwrap_or(1);
        let often: Vec<_> = sound.iter().cycle().take((60_000 / longest).min(200)).collect();
        let spaces: Vec<_> = often.iter().map(|(space, _)| space.clone()).collect();
        let expected = often.iter().map(|(_, (image, kind, length, _))| (image.clone(), *kind, *length)).collect();
        prop_assert_eq!(images(&mut together, page, &spaces, &of_page), Some(expected));
        let (mut counts, mut of_index): (Vec<_>, Vec<_>) =
            sound.iter().map(|(_, (_, kind, _, count))| (*count, matches!(kind, CdKind::Index | CdKind::GhostIndex))).unzip();
        counts.dedup();
        of_index.dedup();
        prop_assert_eq!(together.form().is_some(), counts.len() == 1 && of_index.len() == 1);
        if let Some(form) = together.form() {
            let mut places = Vec::new();
            together.load(page, spaces.iter().cloned(), &of_page, |row| {
                places.push(row.place);
                true
            });
            let [mut written, mut audited] = [(); 2].map(|()| SameShapeRows::default());
            let is_one_form = written.load_written(together.bytes(), &places, form);
            prop_assert_eq!(is_one_form, audited.load_expanded(together.bytes(), &places));
            // Rows without any column have no common form.
            prop_assert_eq!(is_one_form, counts != [0]);
            if is_one_form {
                prop_assert_eq!(written.all(), audited.all(), "what is known without an audit is what an audit finds");
            }
        }
    }
}

#[test]
fn a_column_count_in_two_bytes_that_needs_one_is_left_to_the_general_way() {
    let expansion = Expansion::new(&[column(xtype::INT, false)]).unwrap();
    let of_page = expansion.of_page(None);
    let mut together = ExpandedPage::default();
    let records: [&[u8]; 5] = [
        &[1, 0x80, 1, 2, 0x85],
        &[1, 0x80, 1, 0x0D, 0x85],
        &[1, 0x80, 1, 3, 0x80, 0x10],
        &[1, 1, 2, 0x85],
        &[1, 1, 3, 0x80, 0x10],
    ];
    for record in records {
        let mut page = [0x5A; PAGE_BYTES];
        page[HEADER_BYTES..HEADER_BYTES + record.len()].copy_from_slice(record);
        let space = HEADER_BYTES..HEADER_BYTES + record.len();
        let is_narrow = record[1] == 1;
        assert_eq!(images(&mut together, &page, &[space], &of_page).is_some(), is_narrow, "{record:02X?}");
    }
}

/// Audits and expands a single row. Returns its image, and the kind, length and number of columns of its record; `None`
/// if the row cannot be audited and expanded, or if a value is in doubt.
fn one_by_one(
    page: &PageBytes,
    space: &Range<usize>,
    expansion: &Expansion,
    info: Option<&CompressionInfo<'_>>,
    scratch: &mut Scratch,
) -> Option<(Vec<u8>, CdKind, usize, u16)> {
    let record = CdRecord::read(&page[space.clone()], expansion.columns()).ok()?;
    expansion.audit(&record, info).ok()?;
    let row = expansion.expand(&record, info, scratch).ok().filter(|row| row.doubts.is_empty())?;
    Some((row.record.bytes().to_vec(), record.kind(), record.length()?, record.column_count()))
}

/// Expands rows together. Returns the image of each row, and the kind and length of its record; `None` if the rows
/// cannot be expanded together.
fn images(
    together: &mut ExpandedPage,
    page: &PageBytes,
    spaces: &[Range<usize>],
    columns: &PageColumns<'_>,
) -> Option<Vec<(Vec<u8>, CdKind, usize)>> {
    let mut rows = Vec::new();
    let is_whole = together.load(page, spaces.iter().cloned(), columns, |row| {
        rows.push(row);
        true
    });
    let image = |place: &Range<u32>| together.bytes()[place.start as usize..place.end as usize].to_vec();
    is_whole.then(|| rows.iter().map(|row| (image(&row.place), row.kind, row.length)).collect())
}

#[test]
fn rows_that_have_no_room_together_are_left_to_be_expanded_one_by_one() {
    let info = TypeInfo { xtype: xtype::CHAR, length: 8000, precision: 0, scale: 0 };
    let expansion = Expansion::new(&[Some(CompressedColumn { info, is_uniquifier: false })]).unwrap();
    let (mut together, columns) = (ExpandedPage::default(), expansion.of_page(None));
    let mut page = [0; PAGE_BYTES];
    page[100..104].copy_from_slice(&[0x01, 1, 0x02, b'x']);
    let mut load = |rows| images(&mut together, &page, &vec![100..104; rows], &columns).map(|images| images.len());
    assert_eq!([load(1), load(8), load(9), load(100), load(8)], [Some(1), Some(8), None, None, Some(8)]);
}
