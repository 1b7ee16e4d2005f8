//! Tests with documents from published examples, and with documents that must be rejected.

use super::*;

fn units(text: &str) -> Vec<u8> {
    let mut bytes = vec![text.encode_utf16().count() as u8];
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    bytes
}

fn of(tokens: &[&[u8]]) -> Result<String, Unreadable> {
    let bytes = [&[0xDF, 0xFF, 1, 0xB0, 4][..], &tokens.concat()].concat();
    let mut into = Vec::new();
    text(&bytes, &mut into)?;
    Ok(String::from_utf8(into).unwrap())
}

#[test]
fn elements_attributes_and_text_are_written_with_entities() {
    let (a, b, value) = (units("a"), units("b"), units("x < \"y\""));
    let names: [&[u8]; 6] = [&[0xF0], &a, &[0xEF, 0, 0, 1], &[0xF0], &b, &[0xEF, 0, 0, 2]];
    let start = [&[0xF8, 1, 0xF6, 2, 0x11][..], &value, &[0xF5, 0x11], &value, &[0xF8, 2, 0xF7, 0xF7]].concat();
    let text = of(&[&names.concat(), &start]);
    assert_eq!(text.as_deref(), Ok("<a b=\"x &lt; &quot;y&quot;\">x &lt; \"y\"<b/></a>"));
}

#[test]
fn values_of_typed_documents_are_written_as_their_types() {
    let a = units("a");
    let head: [&[u8]; 4] = [&[0xF0], &a, &[0xEF, 0, 0, 1], &[0xF8, 1]];
    let in_a = |value: &[u8]| of(&[&head.concat(), value, &[0xF7]]);
    assert_eq!(in_a(&[0x87, 7, 5, 2, 1, 0x94, 0x11, 0, 0]).as_deref(), Ok("<a>45</a>"), "4500 / 100");
    assert_eq!(in_a(&[0x0A, 7, 5, 2, 0, 0x95, 0x11, 0, 0]).as_deref(), Ok("<a>-45.01</a>"));
    assert_eq!(in_a(&[0x86, 1, 0x02, 5, 0, 0, 0]).as_deref(), Ok("<a>true 5</a>"));
    assert_eq!(in_a(&[0x85, 4, 1, 2, 3, 4]).as_deref(), Ok("<a>AQIDBA==</a>"));
    assert_eq!(in_a(&[0x81, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Unreadable::Undocumented));
}

#[test]
fn what_does_not_end_is_no_document() {
    assert_eq!(of(&[]).as_deref(), Ok(""));
    assert_eq!(of(&[&[0xF8, 1]]), Err(Unreadable::Impossible), "a name that was not given");
    assert_eq!(of(&[&[0xF7]]), Err(Unreadable::Impossible));
    assert_eq!(of(&[&[0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]]), Err(Unreadable::Impossible));
}
