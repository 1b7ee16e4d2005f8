use super::*;
use crate::collation::CollationId;
use crate::types::{TypeInfo, xtype};

const INT: TypeInfo = TypeInfo { xtype: xtype::INT, length: 4, precision: 10, scale: 0 };
const NAME: TypeInfo = TypeInfo { xtype: xtype::NVARCHAR, length: 100, precision: 0, scale: 0 };
const LATIN: CollationId = CollationId(0xD008);

/// A step: its value, the number of rows with this value, and the number of rows between the previous step's value and
/// this one.
type Given<'a> = (&'a [u8], f32, f32);

fn record((value, equal, range): Given<'_>, is_variable: bool) -> Vec<u8> {
    let end = if is_variable { 16 } else { 16 + value.len() as u16 };
    let mut record = vec![if is_variable { 0x30 } else { 0x10 }, 0];
    record.extend(end.to_le_bytes());
    [equal, range, 1.0].iter().for_each(|count: &f32| record.extend(count.to_le_bytes()));
    if !is_variable {
        record.extend(value);
    }
    record.extend([4, 0, 0]);
    if is_variable {
        record.extend(1u16.to_le_bytes());
        record.extend((record.len() as u16 + 2 + value.len() as u16).to_le_bytes());
        record.extend(value);
    }
    record
}

fn header(version: u32, steps: &[Given<'_>], is_variable: bool) -> Vec<u8> {
    let rows: f32 = steps.iter().map(|(_, equal, range)| equal + range).sum();
    let mut bytes = vec![0; place::PARTS];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(place::VERSION, &version.to_le_bytes());
    put(place::UPDATED, &9_585_641u32.to_le_bytes());
    put(place::UPDATED + 4, &43_113u32.to_le_bytes());
    put(place::ROWS, &(rows as u64).to_le_bytes());
    put(place::ROWS_READ, &(rows as u64).to_le_bytes());
    put(place::DENSITIES, &0.25f32.to_le_bytes());
    put(place::STEPS, &(steps.len() as u32).to_le_bytes());
    put(place::CAPACITY, &(steps.len() as u32).to_le_bytes());
    put(place::PREFIXES, &1u32.to_le_bytes());
    let value = if is_variable { 0 } else { steps.first().map_or(0, |(value, ..)| value.len()) };
    put(place::FIXED_END, &(16 + value as u32).to_le_bytes());
    bytes
}

/// A blob in the form that servers since 2005 write. The part after the histogram has unknown content.
fn blob(steps: &[Given<'_>], is_variable: bool) -> Vec<u8> {
    let mut bytes = header(7, steps, is_variable);
    let records: Vec<Vec<u8>> = steps.iter().map(|step| record(*step, is_variable)).collect();
    let end = 8 * steps.len() + records.iter().map(Vec::len).sum::<usize>();
    let mut long = |value: usize| bytes.extend((value as u64).to_le_bytes());
    long(if steps.is_empty() { 0x10 } else { 0x11 });
    long(0);
    if !steps.is_empty() {
        long(end);
    }
    long(end + 8);
    let mut at = 8 * steps.len();
    for record in &records {
        long(at);
        at += record.len();
    }
    records.iter().for_each(|record| bytes.extend(record));
    bytes.extend([0; 8]);
    bytes
}

/// A blob in the form that SQL Server 2000 wrote.
fn old_blob(steps: &[Given<'_>], is_variable: bool) -> Vec<u8> {
    let mut bytes = header(4, steps, is_variable);
    let mut at = 0;
    let records: Vec<Vec<u8>> = steps.iter().map(|step| record(*step, is_variable)).collect();
    for record in &records {
        bytes.extend((at as u16).to_le_bytes());
        at += record.len();
    }
    bytes.extend([0; 2]);
    records.iter().for_each(|record| bytes.extend(record));
    bytes
}

fn int(value: i32) -> [u8; 4] {
    value.to_le_bytes()
}

fn words(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_blob_is_read_to_its_last_byte() {
    let (one, two, three) = (int(-1), int(7), int(900));
    let steps = [(&one[..], 1.0, 0.0), (&two[..], 2.0, 5.0), (&three[..], 1.0, 0.0)];
    for bytes in [blob(&steps, false), old_blob(&steps, false)] {
        let read = StatisticsBlob::read(&bytes).unwrap();
        assert_eq!((read.updated, read.rows, read.densities.as_slice()), ((9_585_641, 43_113), 9, &[0.25][..]));
        let found: Vec<_> =
            read.steps.iter().map(|step| (step.value.unwrap(), step.equal_rows, step.range_rows)).collect();
        assert_eq!(found, steps);
        assert!(read.has_possible_counts() && read.has_possible_densities());
    }
    let (empty, name) = (words(""), words("Ærø"));
    let steps = [(&empty[..], 1.0, 0.0), (&name[..], 3.0, 0.0)];
    for bytes in [blob(&steps, true), old_blob(&steps, true)] {
        assert_eq!(StatisticsBlob::read(&bytes).unwrap().steps[1].value, Some(&name[..]));
    }
    assert!(StatisticsBlob::read(&blob(&[], false)).unwrap().steps.is_empty());
}

#[test]
fn a_blob_that_was_cut_or_has_bytes_too_many_is_broken() {
    let (one, two) = (int(1), int(2));
    let steps = [(&one[..], 1.0, 0.0), (&two[..], 1.0, 0.0)];
    for mut bytes in [blob(&steps, false), old_blob(&steps, false)] {
        for length in 0..bytes.len() {
            let read = StatisticsBlob::read(&bytes[..length]);
            assert!(matches!(read, Err(Fault::Broken(_))), "{length}: {read:?}");
        }
        bytes.push(0);
        assert!(matches!(StatisticsBlob::read(&bytes), Err(Fault::Broken(_))));
    }
}

#[test]
fn versions_and_parts_that_are_not_known_say_nothing() {
    let one = int(1);
    let mut bytes = blob(&[(&one, 1.0, 0.0)], false);
    bytes[place::PARTS + 1] |= 0x80;
    assert_eq!(StatisticsBlob::read(&bytes), Err(Fault::Unknown));
    bytes[place::VERSION] = 8;
    assert_eq!(StatisticsBlob::read(&bytes), Err(Fault::Unknown));
}

#[test]
fn no_bytes_make_it_panic_or_read_too_much() {
    let (one, two) = (words("a"), words("b"));
    let whole = blob(&[(&one, 1.0, 0.0), (&two, 1.0, 0.0)], true);
    for at in 0..whole.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(read) = StatisticsBlob::read(&bytes) {
                assert!(read.steps.len() <= MAX_STEPS);
                let _: (bool, bool) = (read.has_possible_counts(), read.has_possible_densities());
            }
        }
    }
}

#[test]
fn counts_are_numbers_that_add_up_to_all_rows() {
    let (one, two) = (int(1), int(2));
    let counts_are_possible = |steps: &[Given<'_>], alter: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = blob(steps, false);
        alter(&mut bytes);
        StatisticsBlob::read(&bytes).unwrap().has_possible_counts()
    };
    let steps: [Given<'_>; 2] = [(&one, 2.0, 0.0), (&two, 3.0, 4.0)];
    assert!(counts_are_possible(&steps, &|_| {}));
    let of_a_sample = |bytes: &mut Vec<u8>| bytes[place::ROWS] += 2;
    assert!(counts_are_possible(&steps, &of_a_sample));
    assert!(!counts_are_possible(&steps, &|bytes| {
        of_a_sample(bytes);
        bytes[place::ROWS_READ] += 2;
    }));
    assert!(!counts_are_possible(&[(&one, f32::NAN, 0.0)], &|_| {}));
    assert!(!counts_are_possible(&[(&one, -1.0, 0.0)], &|_| {}));
    assert!(!counts_are_possible(&[(&one, 1.0, 3.0)], &|_| {}), "rows below the first step");
    assert!(counts_are_possible(&steps, &|bytes| {
        // Now the statistics describe two more rows, in which the column is NULL.
        bytes[place::ROWS] += 2;
        bytes[place::ROWS_READ] += 2;
        bytes[place::NULL_ROWS..place::NULL_ROWS + 4].copy_from_slice(&2f32.to_le_bytes());
    }));
}

#[test]
fn steps_ascend_as_the_keys_of_the_column_do() {
    fn step(value: Option<&[u8]>) -> Step<'_> {
        Step { value, equal_rows: 1.0, range_rows: 0.0, average_range_rows: 1.0 }
    }
    let ascends = |order: StepOrder, one: &[u8], other: &[u8]| order.ascends(&step(Some(one)), &step(Some(other)));
    let order = StepOrder::of(INT, CollationId(0)).unwrap();
    assert_eq!(ascends(order, &int(-5), &int(3)), Some(true));
    assert_eq!(ascends(order, &int(3), &int(-5)), Some(false));
    assert_eq!(ascends(order, &int(3), &int(3)), Some(false));
    assert_eq!(order.ascends(&step(None), &step(Some(&int(-5)))), Some(true));
    assert_eq!(order.ascends(&step(Some(&int(-5))), &step(None)), Some(false));
    assert!(!order.fits(&step(Some(&[1, 2]))));

    let order = StepOrder::of(NAME, LATIN).unwrap();
    assert_eq!(ascends(order, &words("abc"), &words("B")), Some(true));
    assert_eq!(ascends(order, &words("B"), &words("abc")), Some(false));
    assert_eq!(ascends(order, &words("abc"), &words("abc")), None, "long values may have been cut");

    let geography = TypeInfo { xtype: xtype::CLR, ..TypeInfo::default() };
    assert_eq!(StepOrder::of(geography, CollationId(0)), None);
}

#[test]
fn variants_are_ordered_within_a_type_and_between_families() {
    let variant = StepOrder::of(TypeInfo { xtype: xtype::SQL_VARIANT, ..INT }, CollationId(0)).unwrap();
    let ascends = |one: &[u8], other: &[u8]| {
        let step = |value| Step { value: Some(value), equal_rows: 1.0, range_rows: 0.0, average_range_rows: 1.0 };
        variant.ascends(&step(one), &step(other))
    };
    let of = |base: u8, value: &[u8]| [&[base, 1], value].concat();
    let text = |value: &str| [&[xtype::NVARCHAR, 1, 100, 0, 0x08, 0xD0, 0, 0][..], &words(value)].concat();
    assert_eq!(ascends(&of(xtype::INT, &int(2)), &of(xtype::INT, &int(3))), Some(true));
    assert_eq!(ascends(&of(xtype::INT, &int(3)), &of(xtype::INT, &int(2))), Some(false));
    assert_eq!(ascends(&of(xtype::INT, &int(3)), &of(xtype::TINYINT, &[4])), None, "two types of one family");
    assert_eq!(ascends(&text("b"), &text("c")), Some(true));
    assert_eq!(ascends(&text("z"), &of(xtype::INT, &int(-1))), Some(true), "texts are below numbers");
    assert_eq!(ascends(&of(xtype::FLOAT, &[0; 8]), &of(xtype::INT, &int(9))), Some(false));
    assert_eq!(ascends(&[xtype::INT], &of(xtype::INT, &int(9))), None, "no value");
    assert_eq!(ascends(&of(xtype::INT, &[1, 2]), &of(xtype::INT, &int(9))), None, "no value of the type");
}
