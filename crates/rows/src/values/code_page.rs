//! Code pages of char and varchar, by collation (docs/format/collations.md#code-pages).

use encoding_rs::Encoding;
use format::collation::CollationId;

use super::text::{self, REPLACEMENT};
use crate::Unreadable;

/// How the bytes of a char column encode characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodePage {
    /// A code page of Windows.
    Windows(&'static Encoding),
    /// The OEM page 437.
    Oem437,
    /// The OEM page 850.
    Oem850,
    /// Not known for certain: only ASCII bytes are decoded.
    Unknown,
}

/// Bits of a collation ID whose meaning is unknown (docs/format/collations.md#ids).
const UNDESCRIBED: u32 = 0x00F0_0400;

impl CodePage {
    /// The code page of a collation.
    pub(crate) fn of(collation: CollationId) -> Self {
        if collation.0 & UNDESCRIBED != 0 {
            return Self::Unknown;
        }
        if collation.is_utf8() {
            return Self::Windows(encoding_rs::UTF_8);
        }
        match collation.0 >> 24 {
            0 => by_family(collation.family()),
            sort_id => by_sort_id(sort_id as u8),
        }
    }

    /// The encoding for the decoder, if the page has one.
    pub(crate) fn encoding(self) -> Option<&'static Encoding> {
        match self {
            Self::Windows(encoding) => Some(encoding),
            Self::Oem437 | Self::Oem850 | Self::Unknown => None,
        }
    }

    /// Appends bytes as UTF-8; returns true if it replaced a byte that the page does not have.
    pub(crate) fn decode(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<bool, Unreadable> {
        let table = match self {
            Self::Windows(encoding) => {
                return Ok(text::decode(&mut encoding.new_decoder_without_bom_handling(), bytes, true, into));
            }
            Self::Unknown if bytes.is_ascii() => {
                into.extend_from_slice(bytes);
                return Ok(false);
            }
            Self::Unknown => return Err(Unreadable::Undocumented),
            Self::Oem437 => OEM_437,
            Self::Oem850 => OEM_850,
        };
        for byte in bytes {
            match byte.checked_sub(0x80) {
                None => into.push(*byte),
                Some(high) => match table.chars().nth(high.into()) {
                    Some(character) => into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => into.extend_from_slice(REPLACEMENT),
                },
            }
        }
        Ok(false)
    }
}

/// Code pages of Windows collations, by families whose names begin alike (docs/format/collations.md#families).
/// Unicode-only families have none.
fn by_family(family: u8) -> CodePage {
    CodePage::Windows(match format::collation::code_page(family) {
        Some(874) => encoding_rs::WINDOWS_874,
        Some(932) => encoding_rs::SHIFT_JIS,
        Some(936) => encoding_rs::GBK,
        Some(949) => encoding_rs::EUC_KR,
        Some(950) => encoding_rs::BIG5,
        Some(1250) => encoding_rs::WINDOWS_1250,
        Some(1251) => encoding_rs::WINDOWS_1251,
        Some(1252) => encoding_rs::WINDOWS_1252,
        Some(1253) => encoding_rs::WINDOWS_1253,
        Some(1254) => encoding_rs::WINDOWS_1254,
        Some(1255) => encoding_rs::WINDOWS_1255,
        Some(1256) => encoding_rs::WINDOWS_1256,
        Some(1257) => encoding_rs::WINDOWS_1257,
        Some(1258) => encoding_rs::WINDOWS_1258,
        _ => return CodePage::Unknown,
    })
}

/// Code pages of SQL collations, by the sort orders that syscharsets documents.
fn by_sort_id(sort_id: u8) -> CodePage {
    CodePage::Windows(match sort_id {
        30..=35 => return CodePage::Oem437,
        40..=49 | 55..=61 => return CodePage::Oem850,
        50..=54 | 71..=75 | 183..=186 => encoding_rs::WINDOWS_1252,
        80..=96 => encoding_rs::WINDOWS_1250,
        104..=108 => encoding_rs::WINDOWS_1251,
        112..=124 => encoding_rs::WINDOWS_1253,
        128..=130 => encoding_rs::WINDOWS_1254,
        136..=138 => encoding_rs::WINDOWS_1255,
        144..=146 => encoding_rs::WINDOWS_1256,
        152..=160 => encoding_rs::WINDOWS_1257,
        _ => return CodePage::Unknown,
    })
}

/// Characters of the bytes 0x80 to 0xFF.
const OEM_437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";
const OEM_850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: u32, bytes: &[u8]) -> Result<String, Unreadable> {
        let mut into = Vec::new();
        CodePage::of(CollationId(id)).decode(bytes, &mut into)?;
        Ok(String::from_utf8(into).unwrap())
    }

    #[test]
    fn text_is_read_in_the_code_page_of_its_collation() {
        assert_eq!(text(0x3400_D008, b"Z\xFCrich").as_deref(), Ok("Zürich"), "SQL_Latin1_General_CP1_CI_AS");
        assert_eq!(text(0xD015, b"\xCC\xEE\xF1\xEA\xE2\xE0").as_deref(), Ok("Москва"), "Cyrillic_General_CI_AS");
        assert_eq!(text(0xD024, b"\xD6\xD0\xCE\xC4").as_deref(), Ok("中文"), "Chinese_PRC_CI_AS");
        assert_eq!(text(0x2000_D008, b"\x81\x9C").as_deref(), Ok("ü£"), "SQL_Latin1_General_CP437");
        assert_eq!(text(0x2A00_D008, b"\x81\x9C").as_deref(), Ok("ü£"), "SQL_Latin1_General_CP850");
    }

    #[test]
    fn utf8_collations_are_told_from_those_with_supplementary_characters() {
        assert_eq!(text(0x4_D188, "Zürich 東京 😀".as_bytes()).as_deref(), Ok("Zürich 東京 😀"), "_100_CI_AS_SC_UTF8");
        assert_eq!(text(0x4_0888, "日本".as_bytes()).as_deref(), Ok("日本"), "Latin1_General_100_BIN2_UTF8");
        assert_eq!(text(0x4_D108, b"Z\xFCrich").as_deref(), Ok("Zürich"), "Latin1_General_100_CI_AS_SC");
        assert_eq!(text(0x6_D348, b"\x93\xFA\x96\x7B").as_deref(), Ok("日本"), "Japanese_XJIS_140_CI_AS");
        let mut into = Vec::new();
        let page = CodePage::of(CollationId(0x4_D188));
        assert_eq!((page.decode(b"Z\xFCrich", &mut into), into.as_slice()), (Ok(true), "Z\u{FFFD}rich".as_bytes()));
    }

    #[test]
    fn families_of_one_language_share_its_code_page() {
        assert_eq!(text(0xD028, b"ma\xF1ana").as_deref(), Ok("mañana"), "Modern_Spanish_CI_AS");
        assert_eq!(text(0xD004, b"\xC8esko").as_deref(), Ok("Česko"), "Czech_CI_AS");
        assert_eq!(text(0xD01B, b"\xB3\xE6\xE0").as_deref(), Ok("іжа"), "Ukrainian_CI_AS");
        assert_eq!(text(0x4_D043, b"\xD6\xD0").as_deref(), Ok("中"), "Chinese_Simplified_Pinyin_100_CI_AS");
    }

    #[test]
    fn without_a_certain_code_page_only_ascii_is_text() {
        assert_eq!(text(0xD07F, b"plain").as_deref(), Ok("plain"));
        assert_eq!(text(0xD07F, b"Z\xFCrich"), Err(Unreadable::Undocumented), "a family that is not known");
        assert_eq!(text(0xD408, b"\xFC"), Err(Unreadable::Undocumented), "a bit that is not known");
        assert_eq!(text(0x2_D035, b"\xFC"), Err(Unreadable::Undocumented), "Indic_General_90, for Unicode alone");
    }

    #[test]
    fn oem_pages_have_a_character_for_each_byte() {
        assert_eq!((OEM_437.chars().count(), OEM_850.chars().count()), (128, 128));
    }
}
