use super::*;
use crate::compressed::{CdIssue, CdKind};
use crate::types::xtype;
use proptest::prelude::*;

fn column(kind: u8, length: u16) -> Option<CompressedColumn> {
    let mut info = TypeInfo { xtype: kind, length, precision: 18, scale: 2 };
    info.length = crate::types::fixed_length(info).unwrap_or(length);
    Some(CompressedColumn { info, is_uniquifier: false })
}

/// A table of int, varchar(20), bit, nchar(3), nvarchar(20), varbinary(max).
fn table() -> Expansion {
    let columns = [
        column(xtype::INT, 4),
        column(xtype::VARCHAR, 20),
        column(xtype::BIT, 1),
        column(xtype::NCHAR, 6),
        column(xtype::NVARCHAR, 40),
        column(xtype::VARBINARY, 0),
    ];
    Expansion::new(&columns).unwrap()
}

fn fixed<'a>(record: &Record<'a>, expansion: &Expansion, column: usize, length: u16) -> &'a [u8] {
    record.fixed(expansion.place(column).unwrap().unsigned_abs(), length).unwrap()
}

fn variable<'a>(record: &Record<'a>, expansion: &Expansion, column: usize) -> (&'a [u8], bool) {
    record.variable(expansion.place(column).unwrap().unsigned_abs()).unwrap()
}

#[test]
fn a_row_has_its_columns_in_the_places_of_the_expansion() {
    let expansion = table();
    assert_eq!((0..6).map(|column| expansion.place(column).unwrap()).collect::<Vec<_>>(), [4, -1, 8, 9, -2, -3]);
    let bytes =
        [&[0x21, 6, 0xA2, 0x2B, 0xA0, 0x81][..], b"x", &[0x01, 2, 0, 3, 0, 19, 0x80], b"abc", &[7; 16]].concat();
    let record = CdRecord::read(&bytes, 6).unwrap();
    expansion.audit(&record, None).unwrap();
    let mut scratch = Scratch::default();
    let expanded = expansion.expand(&record, None, &mut scratch).unwrap();
    let row = expanded.record;
    assert!(expanded.doubts.is_empty());
    assert_eq!((row.kind(), row.column_count(), row.variable_count()), (RecordKind::Primary, 6, 3));
    assert_eq!(fixed(&row, &expansion, 0, 4), 1i32.to_le_bytes());
    assert_eq!(variable(&row, &expansion, 1), (&b"abc"[..], false));
    assert_eq!(fixed(&row, &expansion, 2, 1), [1]);
    assert_eq!(fixed(&row, &expansion, 3, 6), *b"x\0 \0 \0");
    assert_eq!(row.null_bit(5), Some(true));
    assert_eq!(variable(&row, &expansion, 5), (&[7; 16][..], true), "complex stays complex");
}

#[test]
fn an_old_row_ends_where_its_columns_do() {
    let expansion = table();
    let bytes = [0x01, 2, 0x12, 0x7F];
    let record = CdRecord::read(&bytes, 6).unwrap();
    let mut scratch = Scratch::default();
    let row = expansion.expand(&record, None, &mut scratch).unwrap().record;
    assert_eq!((row.fixed_end(), row.column_count(), row.variable_count()), (8, 2, 1));
    assert_eq!(fixed(&row, &expansion, 0, 4), (-1i32).to_le_bytes());
    assert_eq!((row.fixed(9, 6), row.null_bit(3), row.variable(2)), (None, None, None));
}

/// The test uses a dumped page from a course published in 2013. Its columns are bigint, varchar, bigint and rowversion;
/// it has one anchor and two rows.
#[test]
fn a_dumped_page_with_anchor() {
    let expansion = Expansion::new(&[
        column(xtype::BIGINT, 8),
        column(xtype::VARCHAR, 1000),
        column(xtype::BIGINT, 8),
        column(xtype::TIMESTAMP, 8),
    ])
    .unwrap();
    let anchor = [
        &[0x21, 0x04, 0xA0, 0x40, 0x01, 0x14, 0x01, 0x01, 0x01, 0x00, 0x21, 0x00][..],
        b"Silva Maria Lina Maria Lina Silva",
    ]
    .concat();
    let bytes = [&[0x02, 0, 0, 5 + anchor.len() as u8, 0][..], &anchor].concat();
    let info = CompressionInfo::read(&bytes, 4).unwrap();
    let rows = [
        (&[0x99, 0x8A, 0xA6, 0x01, 0x13, 0xC0, 0x01, 0x01, 0x00, 0x18, 0x00][..], &b"\x06Carolina Carolina Silva"[..]),
        (&[0x99, 0x8B, 0xA7, 0x01, 0x13, 0xC1, 0x01, 0x01, 0x00, 0x11, 0x00], b"\x09cos Marcos Silva"),
    ];
    let expected =
        [(6538i64, "Silva Carolina Carolina Silva", 0x0001_13C0_u64), (6539, "Silva Marcos Marcos Silva", 0x0001_13C1)];
    let mut scratch = Scratch::default();
    for ((short, long), (code, name, stamp)) in rows.into_iter().zip(expected) {
        let bytes = [&[0x21, 0x04, 0xA3, 0x42][..], short, long].concat();
        let record = CdRecord::read(&bytes, 4).unwrap();
        expansion.audit(&record, Some(&info)).unwrap();
        let row = expansion.expand(&record, Some(&info), &mut scratch).unwrap().record;
        assert_eq!(fixed(&row, &expansion, 0, 8), code.to_le_bytes());
        assert_eq!(variable(&row, &expansion, 1), (name.as_bytes(), false));
        assert_eq!(fixed(&row, &expansion, 2, 8), (code % 100).to_le_bytes(), "the course's script sets it so");
        assert_eq!(fixed(&row, &expansion, 3, 8), stamp.to_be_bytes());
    }
}

/// Compression information for three int columns. The first column has no anchor, the second has an empty anchor, and
/// the third has the anchor 1000. The dictionary has 1001, stored relative to the third anchor, and 707, stored as a
/// whole.
fn dictionary_page() -> Vec<u8> {
    let anchor = [0x01, 3, 0x10, 0x03, 0x83, 0xE8];
    let mut bytes = vec![0x06, 0, 0, 13, 0, 0, 0];
    bytes.extend(anchor);
    bytes.extend([2, 0, 8, 0, 10, 0, 0x01, 0xE9, 0x82, 0xC3]);
    bytes[5] = bytes.len() as u8;
    bytes
}

#[test]
fn prefixes_and_symbols() {
    let expansion = Expansion::new(&[column(xtype::INT, 4); 3]).unwrap();
    let bytes = dictionary_page();
    let info = CompressionInfo::read(&bytes, 3).unwrap();
    let mut scratch = Scratch::default();
    let mut values = |bytes: &[u8]| {
        let record = CdRecord::read(bytes, 3).unwrap();
        expansion.audit(&record, Some(&info)).unwrap();
        let row = expansion.expand(&record, Some(&info), &mut scratch).unwrap();
        assert!(row.doubts.is_empty(), "{:?}", row.doubts);
        [0, 1, 2].map(|at| i32::from_le_bytes(*fixed(&row.record, &expansion, at, 4).first_chunk().unwrap()))
    };
    assert_eq!(values(&[0x01, 3, 0x12, 0x01, 0x81]), [1, 0, 1000], "empty equals the anchor, also an empty one");
    assert_eq!(values(&[0x01, 3, 0x3C, 0x0C, 1, 0x00, 0x85, 0]), [707, 5, 1001]);
    assert_eq!(values(&[0x01, 3, 0x11, 0x02, 0x01]), [0, 0, 3], "a prefix alone: one byte, 0x83");
    assert_eq!(values(&[0x01, 3, 0x11, 0x02, 0x00]), [0, 0, 0], "of nothing: zero");
}

#[test]
fn what_does_not_fit_the_page_is_a_fault() {
    let expansion = Expansion::new(&[column(xtype::INT, 4); 3]).unwrap();
    let bytes = dictionary_page();
    let info = CompressionInfo::read(&bytes, 3).unwrap();
    let fault = |bytes: &[u8], info: Option<&CompressionInfo<'_>>| {
        expansion
            .audit(&CdRecord::read(bytes, 3).unwrap(), info)
            .map_err(|fault| (fault.test, fault.value, fault.against))
    };
    let symbol = [0x01, 3, 0x11, 0x0C, 2];
    assert_eq!(fault(&symbol, Some(&info)), Err((CdTest::Symbol, 2, 2)));
    assert_eq!(fault(&symbol, None), Err((CdTest::Symbol, 2, 0)));
    assert_eq!(fault(&[0x01, 3, 0x11, 0x02, 0x03], Some(&info)), Err((CdTest::Prefix, 3, 2)));
    assert_eq!(fault(&[0x01, 3, 0x11, 0x0B], None), Err((CdTest::BitDescriptor, 11, 56)));
    assert_eq!(fault(&[0x01, 3, 0x11, 0x02, 0x03], None), Ok(()), "without an anchor there are no prefixes");
}

#[test]
fn long_prefixes_have_two_bytes_of_length() {
    let expansion = Expansion::new(&[column(xtype::VARCHAR, 300)]).unwrap();
    let anchor = [&[0x21, 1, 0x0A, 1, 1, 0, 150, 0][..], &[b'a'; 150]].concat();
    let mut bytes = [&[0x02, 0, 0, 0, 0][..], &anchor].concat();
    bytes[3] = bytes.len() as u8;
    let info = CompressionInfo::read(&bytes, 1).unwrap();
    let mut scratch = Scratch::default();
    let record = [0x01, 1, 0x06, 0x80, 140, b'n', b'e', b'w'];
    let record = CdRecord::read(&record, 1).unwrap();
    let row = expansion.expand(&record, Some(&info), &mut scratch).unwrap().record;
    assert_eq!(variable(&row, &expansion, 0).0, [&[b'a'; 140][..], b"new"].concat());
    // The bytes 81 hh presumably mean a prefix length of at least 256. No real page with such a length is known.
    let record = [0x01, 1, 0x04, 0x81, 140, b'n'];
    let record = CdRecord::read(&record, 1).unwrap();
    expansion.audit(&record, Some(&info)).unwrap();
    let expanded = expansion.expand(&record, Some(&info), &mut scratch).unwrap();
    assert!(matches!(expanded.doubts, [(1, Doubt::Unknown(_))]));
}

#[test]
fn anchored_bits() {
    let expansion = Expansion::new(&[column(xtype::BIT, 1)]).unwrap();
    let bytes = [0x02, 0, 0, 8, 0, 0x01, 1, 0x0B];
    let info = CompressionInfo::read(&bytes, 1).unwrap();
    let mut scratch = Scratch::default();
    for (row, bit) in [(&[0x01, 1, 0x0B][..], 1), (&[0x01, 1, 0x01], 1), (&[0x01, 1, 0x02, 0], 0)] {
        let row = expansion.expand(&CdRecord::read(row, 1).unwrap(), Some(&info), &mut scratch).unwrap().record;
        assert_eq!(fixed(&row, &expansion, 0, 1), [bit]);
    }
}

#[test]
fn a_forwarded_row_and_a_version_tag_keep_their_marks() {
    let expansion = Expansion::new(&[column(xtype::INT, 4)]).unwrap();
    let mut scratch = Scratch::default();
    let forwarded = [0x11, 1, 0x02, 0x81, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    let record = CdRecord::read(&forwarded, 1).unwrap();
    assert_eq!((record.kind(), record.length()), (CdKind::Forwarded, None));
    let row = expansion.expand(&record, None, &mut scratch).unwrap().record;
    assert_eq!((row.kind(), row.variable_count()), (RecordKind::Forwarded, 1));
    assert_eq!(row.variable(1), Some((&BACK_POINTER[..], true)));
    let versioned = [&[0x1B, 1, 0x02, 0x81][..], &[5; 14]].concat();
    let record = CdRecord::read(&versioned, 1).unwrap();
    let row = expansion.expand(&record, None, &mut scratch).unwrap().record;
    assert_eq!((row.kind(), row.version_tag()), (RecordKind::Index, Some(&[5; 14])));
}

#[test]
fn a_uniquifier_of_zero_has_no_bytes() {
    let info = TypeInfo::from_ti(u32::from(xtype::INT));
    let expansion = Expansion::new(&[Some(CompressedColumn { info, is_uniquifier: true })]).unwrap();
    let mut scratch = Scratch::default();
    let mut stored = |bytes: &[u8]| {
        let record = CdRecord::read(bytes, 1).unwrap();
        expansion.expand(&record, None, &mut scratch).unwrap().record.variable(1).unwrap().0.to_vec()
    };
    assert_eq!(stored(&[0x01, 1, 0x01]), []);
    assert_eq!(stored(&[0x01, 1, 0x02, 0x83]), [3, 0, 0, 0]);
}

#[test]
fn a_rowset_too_wide_for_any_record_has_no_expansion() {
    assert!(Expansion::new(&[column(xtype::CHAR, 8000); 5]).is_none());
    assert!(Expansion::new(&vec![None; MAX_COLUMNS + 1]).is_none());
    assert!(Expansion::new(&[column(xtype::CHAR, 8000); 3]).is_some());
}

/// A small writer of records, written from the documentation alone.
fn write(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let nibble = |value: &Option<Vec<u8>>| match value {
        None => 0,
        Some(value) if value.len() <= 8 => value.len() as u8 + 1,
        Some(_) => 10,
    };
    let is_long = |value: &&Option<Vec<u8>>| nibble(value) == 10;
    let long: Vec<&[u8]> = values.iter().filter(is_long).flatten().map(Vec::as_slice).collect();
    let mut bytes = vec![if long.is_empty() { 0x01 } else { 0x21 }, values.len() as u8];
    for pair in values.chunks(2) {
        bytes.push(nibble(&pair[0]) | pair.get(1).map_or(0, nibble) << 4);
    }
    let leading = values.len().saturating_sub(1) / 30;
    let short = |value: &&Option<Vec<u8>>| !is_long(value);
    let cluster_bytes =
        |cluster: &[Option<Vec<u8>>]| cluster.iter().filter(short).flatten().map(Vec::len).sum::<usize>();
    bytes.extend(values.chunks(30).take(leading).map(|cluster| cluster_bytes(cluster) as u8));
    bytes.extend(values.iter().filter(short).flatten().flatten());
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
    bytes
}

proptest! {
    #[test]
    fn what_is_written_comes_back(
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 1..127),
    ) {
        let bytes = write(&values);
        let record = CdRecord::read(&bytes, values.len()).unwrap();
        prop_assert_eq!(record.length(), Some(bytes.len()));
        let expansion = Expansion::new(&vec![column(xtype::VARBINARY, 20); values.len()]).unwrap();
        expansion.audit(&record, None).unwrap();
        let mut scratch = Scratch::default();
        let row = expansion.expand(&record, None, &mut scratch).unwrap();
        prop_assert!(row.doubts.is_empty());
        for (at, value) in values.iter().enumerate() {
            prop_assert_eq!(row.record.null_bit(at as u16 + 1), Some(value.is_none()));
            prop_assert_eq!(row.record.variable(at as u16 + 1).unwrap().0, value.as_deref().unwrap_or_default());
        }
    }

    #[test]
    fn any_page_expands_or_is_refused(
        kinds in prop::collection::vec(prop::sample::select(vec![56u8, 104, 106, 61, 175, 239, 231, 167, 36, 98]), 1..40),
        mut info in prop::collection::vec(any::<u8>(), 0..120),
        mut rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..6),
    ) {
        let columns: Vec<_> = kinds.iter().map(|kind| column(*kind, 12)).collect();
        let expansion = Expansion::new(&columns).unwrap();
        if info.len() > 7 {
            (info[0], info[1]) = (0x02, 0);
            info[3] = info.len() as u8;
            info[4] = 0;
            (info[5], info[6]) = (0x21, (kinds.len() as u8).min(info[6]));
        }
        let info = CompressionInfo::read(&info, kinds.len()).ok();
        let mut scratch = Scratch::default();
        for row in &mut rows {
            if row.len() > 2 {
                row[0] = row[0] & 0x3F | 1;
                row[1] %= kinds.len() as u8 + 1;
            }
            let Ok(record) = CdRecord::read(row, kinds.len()) else { continue };
            let audited = expansion.audit(&record, info.as_ref()).is_ok();
            if let Ok(expanded) = expansion.expand(&record, info.as_ref(), &mut scratch) {
                prop_assert_eq!(expanded.record.column_count(), record.column_count());
                prop_assert!(audited || !expanded.doubts.is_empty(), "what fails its audit leaves a doubt");
            }
        }
    }
}

#[test]
fn undecided_forms_are_no_faults() {
    assert!(matches!(CdRecord::read(&[0x09, 1, 0, 0, 0, 1, 0, 0, 0], 1), Err(CdIssue::Undecided(_))));
}

#[test]
fn no_page_that_a_server_writes_takes_more_than_the_most_bytes() {
    let most = |expansion: &Expansion| expansion.most_of_page().bytes;
    // An int and a char(8000), which is always NULL. A row takes 7 bytes: 3 for the record without its values, 2 for
    // its values, and 2 for its slot.
    let wide = Expansion::new(&[column(xtype::INT, 4), column(xtype::CHAR, 8000)]).unwrap();
    assert!(most(&wide) >= 8096 / 7 * (4 + 4 + 8000 + 2 + 1));
    assert!(most(&wide) < 14 << 20);
    // Rows that were written before the char column was added have only the int. They need less memory.
    let narrow = Expansion::new(&[column(xtype::INT, 4)]).unwrap();
    assert!(most(&wide) > most(&narrow));
    // A Unicode text of which each character is stored in one byte.
    for length in [8000, 0] {
        let text = Expansion::new(&[column(xtype::NVARCHAR, length), column(xtype::NVARCHAR, length)]).unwrap();
        assert!((2 * 8096..1 << 20).contains(&most(&text)));
        assert!(most(&text.with_information()) >= 867 * 8060);
    }
    let text = Expansion::new(&[column(xtype::TEXT, 16); 2]).unwrap().with_information();
    assert!(most(&text) > 4 << 20, "'text in row'");
    // Short columns stay short, even if an anchor or a dictionary completes their values.
    let short = Expansion::new(&[column(xtype::INT, 4), column(xtype::NVARCHAR, 100)]).unwrap().with_information();
    assert!((1156 * 100..1 << 20).contains(&most(&short)));
    assert_eq!(short.most_of_page().values, 8096 / 5 * 2);
}
