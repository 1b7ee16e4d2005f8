//! Code pages of char and varchar under Windows collations (docs/format/collations.md#families).

use std::sync::LazyLock;

use super::CollationId;

/// The characters of the bytes from 0x80 on; `None` for a byte that the page does not define.
pub(super) type HighHalf = [Option<u16>; 128];

/// The code page of a Windows collation, by family; `None` for families for Unicode alone. The code page of a SQL
/// collation follows from its sort order.
pub fn code_page(family: u8) -> Option<u16> {
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

/// The characters of the bytes from 0x80 on under a Windows collation, if its code page has one byte per character.
pub(super) fn high_half(collation: CollationId) -> Option<&'static HighHalf> {
    if collation.sort_id() != 0 || collation.is_utf8() {
        return None;
    }
    let page = code_page(collation.family())?;
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

/// Single-byte code pages, from 0x80 on; U+FFFD where a page has no character, or a control code.
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
