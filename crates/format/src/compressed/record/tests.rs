use super::*;
use proptest::prelude::*;

fn read(bytes: &[u8], columns: usize) -> CdRecord<'_> {
    CdRecord::read(bytes, columns).unwrap()
}

fn test_of(bytes: &[u8], columns: usize) -> Option<CdTest> {
    match CdRecord::read(bytes, columns) {
        Err(CdIssue::Fault(fault)) => Some(fault.test),
        _ => None,
    }
}

fn values<'a>(record: &CdRecord<'a>) -> Vec<&'a [u8]> {
    record.columns().map(|column| column.bytes).collect()
}

/// A record from a DBCC PAGE dump: 101, "This is row 1", "Row 1" as char(2000).
fn dumped() -> Vec<u8> {
    [&[0x21, 0x03, 0xA2, 0x16, 0xE5][..], b"Row 1", &[0x01, 0x01, 0x00, 0x0D, 0x00], b"This is row 1"].concat()
}

#[test]
fn a_dumped_row() {
    let bytes = dumped();
    let record = read(&bytes, 3);
    assert_eq!((record.kind(), record.column_count(), record.length()), (CdKind::Primary, 3, Some(28)));
    assert_eq!(values(&record), [&[0xE5][..], b"This is row 1", b"Row 1"]);
    let descriptors: Vec<_> = record.columns().map(|column| column.descriptor).collect();
    assert_eq!(descriptors, [Descriptor::Short(1), Descriptor::Long, Descriptor::Short(5)], "as DBCC PAGE names them");
}

#[test]
fn a_dumped_anchor() {
    // Nine columns. DBCC PAGE shows five of them: column 1 at offset 7 (3 bytes), column 3 at offset 10 (3 bytes),
    // column 5 at offset 13 (7 bytes), column 6 at offset 20 (1 byte) and column 9 at offset 21 (7 bytes).
    let bytes = [
        0x01, 0x09, 0x04, 0x04, 0x28, 0x00, 0x18, 0x83, 0x03, 0x00, 0x81, 0x18, 0x8B, 0x80, 0xA3, 0x1E, 0, 0, 0, 0,
        0x53, 0x80, 0xA3, 0x1E, 0, 0, 0, 0,
    ];
    let record = read(&bytes, 9);
    assert_eq!(record.length(), Some(28));
    let lengths: Vec<_> = values(&record).iter().map(|value| value.len()).collect();
    assert_eq!(lengths, [3, 0, 3, 0, 7, 1, 0, 0, 7]);
    assert_eq!(values(&record)[5], b"S");
}

/// A record of 107 columns like the example in docs/format/compression.md#records: its leading clusters have 28, 34 and
/// 2 short bytes, and 7, 1 and 5 long values.
fn wide() -> Vec<u8> {
    let mut nibbles = vec![1u8; 107];
    for (cluster, short, long) in [(0usize, 28usize, 7), (1, 34, 1), (2, 2, 5)] {
        let mut left = short;
        let mut at = cluster * 30;
        while left > 0 {
            let bytes = left.min(8);
            nibbles[at] = bytes as u8 + 1;
            left -= bytes;
            at += 1;
        }
        nibbles[at..at + long].fill(10);
    }
    nibbles.push(0);
    let mut bytes = vec![0x21, 107];
    bytes.extend(nibbles.chunks(2).map(|pair| pair[0] | pair[1] << 4));
    bytes.extend([0x1C, 0x22, 0x02]);
    bytes.extend([7; 28 + 34 + 2]);
    bytes.extend([1, 13, 0]);
    bytes.extend((1..=13u16).flat_map(|end| (end * 2).to_le_bytes()));
    bytes.extend([0x07, 0x01, 0x05]);
    bytes.extend([9; 26]);
    bytes
}

#[test]
fn clusters_of_thirty_columns() {
    let bytes = wide();
    let record = read(&bytes, 107);
    assert_eq!(record.length(), Some(bytes.len()));
    assert_eq!(values(&record).iter().filter(|value| **value == [9, 9]).count(), 13);
    assert_eq!(values(&record).iter().map(|value| value.len()).sum::<usize>(), 64 + 26);
    for (at, test) in [(2 + 54, CdTest::ShortCluster), (bytes.len() - 29, CdTest::LongCluster)] {
        let mut bytes = wide();
        bytes[at] ^= 1;
        assert_eq!(test_of(&bytes, 107), Some(test));
    }
}

#[test]
fn each_rule_is_tested() {
    let with = |at: usize, byte: u8| {
        let mut bytes = dumped();
        bytes[at] = byte;
        test_of(&bytes, 3)
    };
    assert_eq!(with(0, 0x20), Some(CdTest::Compressed));
    assert_eq!(with(1, 4), Some(CdTest::ColumnCount));
    assert_eq!(with(2, 0xAD), Some(CdTest::Descriptor));
    let one = [0x21, 2, 0xAA, 1, 1, 0, 3, 0, b'a', b'b', b'c'];
    assert_eq!(test_of(&one, 2), Some(CdTest::LongCount), "two long descriptors, one long value");
    assert_eq!(with(0, 0x01), Some(CdTest::LongCount), "a long descriptor, no long region");
    assert_eq!(with(13, 0x0E), Some(CdTest::LongEnd));
    assert_eq!(with(0, 0x23), Some(CdTest::VersionTag));
    assert_eq!(test_of(&dumped()[..3], 3), Some(CdTest::Descriptors));
    assert_eq!(test_of(&dumped()[..7], 3), Some(CdTest::ShortRegion));
    assert_eq!(test_of(&dumped()[..11], 3), Some(CdTest::LongRegion));
    let two = [0x21, 2, 0xAA, 1, 2, 0, 3, 0, 2, 0, b'a', b'b', b'c'];
    assert_eq!(test_of(&two, 2), Some(CdTest::LongAscend));
    for undecided in [with(0, 0x61), with(0, 0x29), with(0, 0x25), with(10, 0), with(10, 5), with(11, 2)] {
        assert_eq!(undecided, None, "an undocumented form is no fault");
    }
}

#[test]
fn each_long_value_says_whether_it_is_complex() {
    let bytes = [0x21, 3, 0xAA, 0x0A, 1, 3, 0, 0x02, 0x80, 0x04, 0x80, 0x05, 0x00, 1, 1, 2, 2, 3];
    let columns: Vec<_> = read(&bytes, 3).columns().map(|column| (column.bytes, column.is_complex)).collect();
    assert_eq!(columns, [(&[1, 1][..], true), (&[2, 2], true), (&[3], false)]);
}

#[test]
fn old_rows_have_fewer_columns() {
    assert_eq!(read(&dumped(), 5).column_count(), 3);
}

#[test]
fn a_wide_column_count_counts_only_if_it_is_the_rowsets() {
    let bytes = [&[0x01, 0x80, 200][..], &[0x11; 100], &[0; 6]].concat();
    assert_eq!(read(&bytes, 200).column_count(), 200);
    assert!(matches!(CdRecord::read(&bytes, 201), Err(CdIssue::Undecided(_))));
}

#[test]
fn a_version_tag_ends_the_record() {
    let bytes = [&[0x03, 1, 0x02, 0x81][..], &[5; 14], &[0xFF; 3]].concat();
    let record = read(&bytes, 1);
    assert_eq!((record.length(), record.version_tag()), (Some(18), Some(&[5; 14])));
}

#[test]
fn kinds_by_number() {
    let kinds: Vec<_> = (0..8).map(|kind| CdKind::of(1 | kind << 2)).collect();
    assert_eq!(
        kinds.iter().map(|kind| kind.is_ghost()).collect::<Vec<_>>(),
        [false, true, false, true, false, true, false, true]
    );
    assert_eq!(kinds[6].plain(), RecordKind::Index);
    assert_eq!(kinds[4].plain(), RecordKind::Forwarded);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..400), columns in 0usize..300) {
        if let Some(first) = bytes.first_mut() {
            *first |= 1;
        }
        if let Ok(record) = CdRecord::read(&bytes, columns) {
            prop_assert_eq!(record.columns().count(), usize::from(record.column_count()), "no column is lost");
            prop_assert!(record.bytes().len() <= bytes.len());
        }
    }
}
