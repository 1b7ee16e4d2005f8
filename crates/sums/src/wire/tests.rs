use super::*;

type Parts = (Vec<(u64, String)>, BTreeMap<RecordId, Option<i64>>, (Sum, bool, Cow<'static, str>));

fn parts() -> Parts {
    let texts = (0..20_000).map(|number| (number * number * 977, format!("text {number}"))).collect();
    let at = |slot| RecordId { page: PageId::new(3, u32::MAX), slot };
    let map = BTreeMap::from([(at(1), None), (at(2), Some(i64::MIN))]);
    (texts, map, (FactHash::new(Some(5)).page(PageId::new(1, 9)), true, Cow::Borrowed("pages")))
}

fn written(seed: u64) -> Vec<u8> {
    let (mut bytes, space) = (Vec::new(), TempStore::new(None, 1 << 20));
    let hash = FactHash::new(Some(seed));
    let mut output = Output::new(&hash, b"head", &space, &mut bytes);
    parts().write(&mut output).unwrap();
    output.finish().unwrap();
    bytes
}

fn read(mut bytes: &[u8]) -> Result<Parts, SumsError> {
    let (space, hash) = (TempStore::new(None, 1 << 20), FactHash::new(Some(5)));
    let mut input = Input::new(&hash, b"head", (&space, 0), &mut bytes);
    let parts = Parts::read(&mut input)?;
    input.finish()?;
    Ok(parts)
}

#[test]
fn what_is_written_is_read_again() {
    let bytes = written(5);
    assert!(bytes.len() > 3 * FRAME_BYTES);
    assert_eq!(read(&bytes).unwrap(), parts());
    assert_eq!(bytes, written(5), "the same bytes each time");
}

#[test]
fn bytes_that_were_cut_or_changed_are_an_error_and_so_are_those_of_another_run() {
    cut_or_change(9973);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn bytes_that_were_cut_or_changed_in_more_places_are_an_error() {
    cut_or_change(997);
}

/// Tries truncated and changed copies of the output, one at a time. The output is truncated at every `step`th byte.
/// Each other copy has one changed byte. There is one such copy for every `step`th byte, and one for each of the first
/// and last 64 bytes. Each copy must cause an error.
fn cut_or_change(step: usize) {
    let bytes = written(5);
    for cut in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    for at in (0..bytes.len()).step_by(step).chain(0..64).chain(bytes.len() - 64..bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(read(&changed).is_err(), "changed at {at}");
    }
    let error = read(&written(6)).unwrap_err().to_string();
    assert!(error.contains("the hash of a frame") && error.contains("the same seed"), "{error}");
}

#[test]
fn a_length_that_no_data_backs_takes_no_memory() {
    let (space, hash) = (TempStore::new(None, 1 << 20), FactHash::new(Some(5)));
    let mut bytes = Vec::new();
    let mut output = Output::new(&hash, b"head", &space, &mut bytes);
    MOST.write(&mut output).unwrap();
    output.finish().unwrap();
    assert!(Vec::<u64>::read(&mut Input::new(&hash, b"head", (&space, 0), &mut &bytes[..])).is_err());
    assert!(String::read(&mut Input::new(&hash, b"head", (&space, 0), &mut &bytes[..])).is_err());
}
