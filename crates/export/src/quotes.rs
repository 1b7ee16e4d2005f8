//! Texts as fields of CSV files (RFC 4180): in quotes if they need them.

use format::bytes::plain_start;

/// Writes a text, in quotes if it needs them.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let is_plain = match bytes.len() {
        0 => false,
        1..=SHORT_BYTES => short(out, bytes),
        _ => long(out, bytes),
    };
    if !is_plain {
        out.truncate(start);
        out.push(b'"');
        quoted(out, bytes);
        out.push(b'"');
    }
}

/// Texts up to this length are searched and copied in one pass, eight bytes at a time, without a call to `memcpy`.
const SHORT_BYTES: usize = 64;

#[inline]
fn needs_quotes(byte: u8) -> bool {
    (byte == b',') | (byte == b'"') | (byte == b'\r') | (byte == b'\n')
}

/// Copies a text that needs no quotes. Returns false if the text needs quotes; a part of it may then be copied already.
#[inline]
fn short(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let are_plain = |chunk: &[u8; 8]| !chunk.iter().fold(false, |needs, byte| needs | needs_quotes(*byte));
    let end = out.len() + bytes.len();
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk() {
        if !are_plain(chunk) {
            return false;
        }
        out.extend_from_slice(chunk);
        rest = after;
    }
    if rest.is_empty() {
        return true;
    }
    // The last eight bytes of the text may overlap bytes that are already copied. In this case, the overlap is first
    // removed from the output. A text of less than eight bytes is padded to eight bytes, and the padding is removed
    // afterwards.
    let last = match bytes.last_chunk() {
        Some(last) => {
            out.truncate(end - 8);
            *last
        }
        None => format::bytes::unsigned(rest).to_le_bytes(),
    };
    out.extend_from_slice(&last);
    out.truncate(end);
    are_plain(&last)
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let is_plain = plain_start(bytes, needs_quotes) == bytes.len();
    if is_plain {
        out.extend_from_slice(bytes);
    }
    is_plain
}

/// Writes the content of a quoted field, with each quote doubled.
pub(crate) fn quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let (plain, from) = rest.split_at_checked(plain_start(rest, |byte| byte == b'"')).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((_, after)) = from.split_first() else { return };
        out.extend_from_slice(b"\"\"");
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_quoted_exactly_if_it_has_a_special_character_anywhere() {
        for length in 0..=SHORT_BYTES + 20 {
            let plain: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).collect();
            let written = |bytes: &[u8]| {
                let mut out = b"before,".to_vec();
                text(&mut out, bytes);
                String::from_utf8(out.split_off(7)).unwrap()
            };
            let expected = if plain.is_empty() { "\"\"".to_owned() } else { String::from_utf8(plain.clone()).unwrap() };
            assert_eq!(written(&plain), expected);
            for at in 0..length {
                for special in *b",\"\r\n" {
                    let mut bytes = plain.clone();
                    bytes[at] = special;
                    let inside = String::from_utf8(bytes.clone()).unwrap().replace('"', "\"\"");
                    assert_eq!(written(&bytes), format!("\"{inside}\""));
                }
            }
        }
    }
}
