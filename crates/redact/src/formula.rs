//! Definitions in the catalog: names in brackets and constants in quotes (docs/format/expressions.md#form).

use crate::key::Key;
use crate::letters::Form;
use crate::texts::Texts;
use crate::wipe::wipe;

/// The names in brackets.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let parts = parts(&units).into_iter().filter(|part| part.is_name);
    parts.map(|part| String::from_utf16_lossy(units.get(part.range).unwrap_or_default()).replace("]]", "]")).collect()
}

/// A name in brackets or a constant in quotes, without the brackets or quotes.
struct Part {
    is_name: bool,
    range: std::ops::Range<usize>,
}

fn parts(units: &[u16]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        let (end, is_name) = match u8::try_from(*unit) {
            Ok(b'[') => (u16::from(b']'), true),
            Ok(b'\'') => (u16::from(b'\''), false),
            _ => {
                at += 1;
                continue;
            }
        };
        let from = at + 1;
        at = from;
        // Inside, the closing character is written twice.
        while let Some(unit) = units.get(at) {
            if *unit == end {
                if units.get(at + 1) != Some(&end) {
                    break;
                }
                at += 1;
            }
            at += 1;
        }
        parts.push(Part { is_name, range: from..at.min(units.len()) });
        at += 1;
    }
    parts
}

/// A number with fewer digits is not listed if it stays in the definition of a default or a CHECK constraint.
const LEAST_DIGITS: usize = 4;

/// Replaces the names in brackets by their new names and, if `constants` is set, the constants in quotes. `form` is the
/// form of the text; `names` are names in UTF-16. Returns whether something that is listed stays: a number, a constant
/// in quotes, or a name in a code page with several bytes per character.
pub(crate) fn replace(text: &mut [u8], form: Form, names: &Texts, constants: bool, key: Key) -> bool {
    let width = form.width();
    let units: Vec<u16> = match width {
        2 => text.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect(),
        _ => text.iter().map(|byte| (*byte).into()).collect(),
    };
    let parts = parts(&units);
    let least = if constants { LEAST_DIGITS } else { 1 };
    let mut stays = has_number(&units, &parts, least) || !constants && parts.iter().any(|part| !part.is_name);
    for part in parts {
        let Some(bytes) = text.get_mut(width * part.range.start..width * part.range.end) else { continue };
        match (part.is_name, width) {
            (true, 2) => names.replace(bytes),
            // The letters of names that are not ASCII stay. So a name can be replaced in its code page, too.
            (true, _) => {
                let mut wide: Vec<u8> = Vec::with_capacity(2 * bytes.len());
                if !format::collation::append_utf16(bytes, form.collation(), &mut wide) || wide.len() != 2 * bytes.len()
                {
                    stays = true;
                    continue;
                }
                names.replace(&mut wide);
                for (byte, [low, _]) in bytes.iter_mut().zip(wide.as_chunks::<2>().0) {
                    if byte.is_ascii() {
                        *byte = *low;
                    }
                }
            }
            (false, _) if constants => wipe(bytes, key),
            (false, _) => {}
        }
    }
    stays
}

/// Whether there is a number outside of the parts with at least this number of digits, before and after its point
/// together. A binary constant such as 0xA1 counts whatever its length: it is a text, an image or a key.
fn has_number(units: &[u16], parts: &[Part], least: usize) -> bool {
    let starts = std::iter::once(0).chain(parts.iter().map(|part| part.range.end));
    let ends = parts.iter().map(|part| part.range.start).chain([units.len()]);
    let is_digit = |unit: &u16| u8::try_from(*unit).is_ok_and(|byte| byte.is_ascii_digit());
    let is_of_number = |unit: &u16| is_digit(unit) || *unit == u16::from(b'.');
    let is_binary =
        |two: &[u16]| matches!(two, [zero, x] if *zero == u16::from(b'0') && (*x | 0x20) == u16::from(b'x'));
    starts.zip(ends).any(|(start, end)| {
        let between = units.get(start..end).unwrap_or_default();
        between.windows(2).any(is_binary)
            || between
                .chunk_by(|one, next| is_of_number(one) == is_of_number(next))
                .any(|run| run.iter().filter(|unit| is_digit(unit)).count() >= least)
    })
}

#[cfg(test)]
mod tests {
    use format::collation::CollationId;

    use super::*;
    use crate::texts::Collected;

    #[test]
    fn names_change_and_the_form_stays() {
        let latin = CollationId(0x3400_D008);
        let mut collected = Collected::new(Form::Unicode(latin));
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        collected.add(&wide("int"), true);
        collected.add(&wide("Unit]Price"), false);
        let key = Key::from_seed(4);
        let names = Texts::draw(collected, key);
        let text = "(CONVERT([int],[Unit]]Price])*(2)+N'it''s [x]')";
        assert_eq!(names_in(text), ["int", "Unit]Price"]);
        let mut bytes = text.as_bytes().to_vec();
        assert!(replace(&mut bytes, Form::Ansi(latin), &names, false, key), "the constants stay");
        let new = String::from_utf8(bytes).unwrap();
        assert!(new.starts_with("(CONVERT([int],[") && new.ends_with("])*(2)+N'it''s [x]')"), "{new}");
        assert_eq!(names_in(&new).len(), 2);
        assert_ne!(new, text);
        let mut expected = wide("Unit]Price");
        names.replace(&mut expected);
        assert_eq!(wide(&names_in(&new)[1]), expected);
    }

    #[test]
    fn a_definition_tells_which_constants_stay() {
        let latin = CollationId(0x3400_D008);
        let key = Key::from_seed(4);
        let names = Texts::draw(Collected::new(Form::Unicode(latin)), key);
        for (text, of_filter, of_check) in [
            ("([Col2]=[Col3])", false, false),
            ("([Status]=(1))", true, false),
            ("([Status]=(1234))", true, true),
            ("([Status]=N'1234')", true, false),
            ("([Price]>(0.1234567))", true, true),
            ("([Price]>(12.34))", true, true),
            ("([Price]>(1.2) AND [Price]<(3.4))", true, false),
            ("([Hash]<>0xA1)", true, true),
            ("([Hash]<>0X)", true, true),
            ("([a.b].[c])", false, false),
            ("(getdate())", false, false),
        ] {
            for (form, bytes) in [
                (Form::Ansi(latin), text.as_bytes().to_vec()),
                (Form::Unicode(latin), text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            ] {
                let stays = |constants| replace(&mut bytes.clone(), form, &names, constants, key);
                assert_eq!((stays(false), stays(true)), (of_filter, of_check), "{text}");
            }
        }
    }
}
