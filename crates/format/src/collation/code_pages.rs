//! The code pages of char and varchar under Windows collations (docs/format/collations.md#families).

use std::sync::LazyLock;

use super::CollationId;

/// The characters of the bytes 0x80 to 0xFF; `None` for a byte that the code page does not define.
pub(super) type HighHalf = [Option<u16>; 128];

/// The code page of char and varchar under a collation; [`UTF_8`] for UTF-8 collations. `None` for families that
/// support only nchar and nvarchar, for sort orders without a known code page, and for IDs with bits of unknown
/// meaning.
pub fn code_page(collation: CollationId) -> Option<u16> {
    if collation.has_unknown_bits() {
        return None;
    }
    match collation.sort_id() {
        _ if collation.is_utf8() => Some(UTF_8),
        0 => of_family(collation.family()),
        sort_id => of_sort_id(sort_id),
    }
}

/// The number that Windows gives to UTF-8.
pub const UTF_8: u16 = 65001;

/// Code pages of Windows collations.
fn of_family(family: u8) -> Option<u16> {
    Some(match family {
        1 | 2 | 37 | 80 | 81 => 1256,
        3 | 47 | 51 | 52 | 62 | 65 | 66 | 69 | 70 => 950,
        4 | 13 | 19 | 20 | 22..=24 | 28 | 42 | 76 | 78 | 88 => 1250,
        6 | 21 | 27 | 55 | 57 | 58 | 77 | 79 | 84 | 100 => 1251,
        7 => 1253,
        5 | 8..=11 | 14 | 15 | 38 | 40 | 41 | 71 | 74 | 75 | 82 | 83 | 86 | 87 | 93 | 96 | 97 => 1252,
        12 => 1255,
        16 | 43 | 48 | 72 | 73 => 932,
        17 | 64 => 949,
        25 => 874,
        26 | 56 | 99 => 1254,
        29..=31 => 1257,
        32 => 1258,
        36 | 46 | 49 | 50 | 67 | 68 => 936,
        _ => return None,
    })
}

/// Code pages of SQL collations, by the sort orders that syscharsets documents.
fn of_sort_id(sort_id: u8) -> Option<u16> {
    Some(match sort_id {
        30..=35 => 437,
        40..=49 | 55..=61 => 850,
        50..=54 | 71..=75 | 183..=186 => 1252,
        80..=96 => 1250,
        104..=108 => 1251,
        112..=124 => 1253,
        128..=130 => 1254,
        136..=138 => 1255,
        144..=146 => 1256,
        152..=160 => 1257,
        _ => return None,
    })
}

/// Whether each byte of char text is one character under a collation.
pub fn has_one_byte_per_character(collation: CollationId) -> bool {
    code_page(collation).is_some_and(|page| !matches!(page, 932 | 936 | 949 | 950 | UTF_8))
}

/// Appends char text as UTF-16. Returns false, and leaves `into` unusable, if the character of a byte is not known.
/// ASCII is known in all code pages. Other characters are known in UTF-8 and in code pages with one byte per character.
pub fn append_utf16(text: &[u8], collation: CollationId, into: &mut Vec<u8>) -> bool {
    if !text.is_ascii() && code_page(collation) == Some(UTF_8) {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        into.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        return true;
    }
    let characters = code_page(collation).and_then(characters);
    text.iter().all(|byte| {
        let unit = match *byte {
            byte @ ..0x80 => Some(byte.into()),
            byte => characters.and_then(|characters| characters.get(usize::from(byte & 0x7F)).copied().flatten()),
        };
        unit.map(|unit| into.extend(unit.to_le_bytes())).is_some()
    })
}

/// Appends UTF-16 text as char, which is the opposite of [`append_utf16`]. Returns false, and leaves `into` unusable,
/// if the code page is not known to have one of the characters. A server may replace such a character by a similar one.
pub fn append_char(text: &[u8], collation: CollationId, into: &mut Vec<u8>) -> bool {
    let units =
        || text.chunks_exact(2).map(|pair| pair.iter().rev().fold(0, |unit, byte| unit << 8 | u16::from(*byte)));
    if code_page(collation) == Some(UTF_8) {
        return char::decode_utf16(units()).all(|character| {
            let encoded = character.map(|character| into.extend(character.encode_utf8(&mut [0; 4]).as_bytes()));
            encoded.is_ok()
        });
    }
    let characters = code_page(collation).and_then(characters);
    units().all(|unit| {
        let byte = match u8::try_from(unit) {
            Ok(byte @ ..0x80) => Some(byte),
            _ => characters
                .and_then(|characters| characters.iter().position(|character| *character == Some(unit)))
                .and_then(|at| u8::try_from(at + 0x80).ok()),
        };
        byte.map(|byte| into.push(byte)).is_some()
    })
}

/// The characters of the bytes from 0x80 on under a Windows collation, if its code page has one byte per character.
pub(super) fn high_half(collation: CollationId) -> Option<&'static HighHalf> {
    if collation.sort_id() != 0 || collation.is_utf8() {
        return None;
    }
    characters(of_family(collation.family())?)
}

/// The characters of the bytes from 0x80 on in a code page with one byte per character.
pub(super) fn characters(page: u16) -> Option<&'static HighHalf> {
    CHARACTERS.iter().find(|(number, _)| *number == page).map(|(_, characters)| characters)
}

static CHARACTERS: LazyLock<Vec<(u16, HighHalf)>> = LazyLock::new(|| {
    let characters = |text: &str| {
        let mut half = [None; 128];
        for (place, character) in half.iter_mut().zip(text.chars()) {
            *place = u16::try_from(u32::from(character)).ok().filter(|unit| *unit != 0xFFFD);
        }
        half
    };
    SINGLE_BYTE.iter().map(|(page, text)| (*page, characters(text))).collect()
});

/// The single-byte code pages, from 0x80 on. A byte without a character, or with a control code, is U+FFFD here.
const SINGLE_BYTE: [(u16, &str); 10] = [
    (
        874,
        "€����…�����������‘’“”•–—��������\u{A0}กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u{E31}าำ\u{E34}\u{E35}\u{E36}\u{E37}\u{E38}\u{E39}\u{E3A}����฿เแโใไๅๆ\u{E47}\u{E48}\u{E49}\u{E4A}\u{E4B}\u{E4C}\u{E4D}\u{E4E}๏๐๑๒๓๔๕๖๗๘๙๚๛����",
    ),
    (
        1250,
        "€�‚�„…†‡�‰Š‹ŚŤŽŹ�‘’“”•–—�™š›śťžź\u{A0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{AD}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
    ),
    (
        1251,
        "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—�™љ›њќћџ\u{A0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{AD}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    ),
    (
        1252,
        "€�‚ƒ„…†‡ˆ‰Š‹Œ�Ž��‘’“”•–—˜™š›œ�žŸ\u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    ),
    (
        1253,
        "€�‚ƒ„…†‡�‰�‹�����‘’“”•–—�™�›����\u{A0}΅Ά£¤¥¦§¨©�«¬\u{AD}®―°±²³΄µ¶·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ�ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ�",
    ),
    (
        1254,
        "€�‚ƒ„…†‡ˆ‰Š‹Œ����‘’“”•–—˜™š›œ��Ÿ\u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ",
    ),
    (
        1255,
        "€�‚ƒ„…†‡ˆ‰�‹�����‘’“”•–—˜™�›����\u{A0}¡¢£₪¥¦§¨©×«¬\u{AD}®¯°±²³´µ¶·¸¹÷»¼½¾¿\u{5B0}\u{5B1}\u{5B2}\u{5B3}\u{5B4}\u{5B5}\u{5B6}\u{5B7}\u{5B8}\u{5B9}�\u{5BB}\u{5BC}\u{5BD}־\u{5BF}׀\u{5C1}\u{5C2}׃װױײ׳״�������אבגדהוזחטיךכלםמןנסעףפץצקרשת��\u{200E}\u{200F}�",
    ),
    (
        1256,
        "€پ‚ƒ„…†‡ˆ‰ٹ‹Œچژڈگ‘’“”•–—ک™ڑ›œ\u{200C}\u{200D}ں\u{A0}،¢£¤¥¦§¨©ھ«¬\u{AD}®¯°±²³´µ¶·¸¹؛»¼½¾؟ہءآأؤإئابةتثجحخدذرزسشصض×طظعغـفقكàلâمنهوçèéêëىيîï\u{64B}\u{64C}\u{64D}\u{64E}ô\u{64F}\u{650}÷\u{651}ù\u{652}ûü\u{200E}\u{200F}ے",
    ),
    (
        1257,
        "€�‚�„…†‡�‰�‹�¨ˇ¸�‘’“”•–—�™�›�¯˛�\u{A0}�¢£¤�¦§Ø©Ŗ«¬\u{AD}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙",
    ),
    (
        1258,
        "€�‚ƒ„…†‡ˆ‰�‹Œ����‘’“”•–—˜™�›œ��Ÿ\u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂĂÄÅÆÇÈÉÊË\u{300}ÍÎÏĐÑ\u{309}ÓÔƠÖ×ØÙÚÛÜƯ\u{303}ßàáâăäåæçèéêë\u{301}íîïđñ\u{323}óôơö÷øùúûüư₫ÿ",
    ),
];
