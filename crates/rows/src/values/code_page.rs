//! Code pages of char and varchar, by collation (docs/format/collations.md#code-pages).

use encoding_rs::Encoding;
use format::collation::{self, CollationId};

use super::text::{self, REPLACEMENT};
use crate::Unreadable;

/// How the bytes of a char column encode characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodePage {
    /// A Windows code page.
    Windows(&'static Encoding),
    /// OEM code page 437.
    Oem437,
    /// OEM code page 850.
    Oem850,
    /// The code page is not known for certain, so only ASCII bytes are decoded.
    Unknown,
}

impl CodePage {
    /// The code page of a collation.
    pub(crate) fn of(collation: CollationId) -> Self {
        Self::Windows(match collation::code_page(collation) {
            Some(437) => return Self::Oem437,
            Some(850) => return Self::Oem850,
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
            Some(collation::UTF_8) => encoding_rs::UTF_8,
            _ => return Self::Unknown,
        })
    }

    /// The encoding for the decoder, if the decoder supports the code page.
    pub(crate) fn encoding(self) -> Option<&'static Encoding> {
        match self {
            Self::Windows(encoding) => Some(encoding),
            Self::Oem437 | Self::Oem850 | Self::Unknown => None,
        }
    }

    /// Appends bytes as UTF-8; returns true if it replaced a byte that the code page does not define.
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

/// The characters of the bytes 0x80 to 0xFF in code page 437. The next constant has those of code page 850.
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

    /// Compares the code page tables of the crate `format` with those of the Encoding Standard.
    #[test]
    fn conversions_of_expressions_agree_with_the_decoder_of_exports() {
        let mut characters = 0;
        for id in [0xD001, 0xD004, 0xD007, 0xD008, 0xD00C, 0xD015, 0xD019, 0xD01A, 0xD01E, 0xD020, 0x3400_D008] {
            for byte in 0x80..=0xFF_u8 {
                let (mut units, mut back) = (Vec::new(), Vec::new());
                if !collation::append_utf16(&[byte], CollationId(id), &mut units) {
                    continue;
                }
                let expected: Vec<u8> = text(id, &[byte]).unwrap().encode_utf16().flat_map(u16::to_le_bytes).collect();
                assert_eq!(units, expected, "{byte:02X} in {id:08X}");
                assert!(collation::append_char(&units, CollationId(id), &mut back));
                assert_eq!(back, [byte], "{id:08X}");
                characters += 1;
            }
        }
        assert!(characters > 1200, "{characters}");
    }

    #[test]
    fn oem_pages_have_a_character_for_each_byte() {
        assert_eq!((OEM_437.chars().count(), OEM_850.chars().count()), (128, 128));
    }
}
