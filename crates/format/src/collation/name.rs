//! The names of collations (docs/format/collations.md#names).
//!
//! The name of a Windows collation is composed of its family, generation and flags; the name of a SQL collation is
//! looked up by its whole ID. An ID that no server lists has no name.

use super::CollationId;

/// The bits of a collation ID that are used only to compose the name.
mod bit {
    pub(super) const UTF8: u32 = 0x80;
    pub(super) const SUPPLEMENTARY_CHARACTERS: u32 = 0x100;
    pub(super) const IGNORES_VARIATION_SELECTORS: u32 = 0x200;
    pub(super) const BINARY_2: u32 = 0x800;
    pub(super) const IGNORES_CASE: u32 = 0x1000;
    pub(super) const IGNORES_ACCENTS: u32 = 0x2000;
    pub(super) const IGNORES_KANA: u32 = 0x4000;
    pub(super) const IGNORES_WIDTH: u32 = 0x8000;
    pub(super) const BINARY: u32 = 0x1_0000;
    /// All bits that say how characters compare.
    pub(super) const SENSITIVITY: u32 = 0xF300;
    /// The bits of the family, UTF-8, sensitivity, BIN, BIN2 and generation.
    pub(super) const OF_WINDOWS_COLLATIONS: u32 = 0x000F_FBFF;
}

impl CollationId {
    /// The name of the collation in `sys.fn_helpcollations`; `None` for an ID that this function does not list.
    pub fn name(self) -> Option<String> {
        if self.0 >> 24 != 0 {
            let at = SQL_COLLATIONS.binary_search_by_key(&self.0, |(id, _)| *id).ok()?;
            return SQL_COLLATIONS.get(at).map(|(_, name)| (*name).to_owned());
        }
        let generation = Generation::of(self)?;
        let (family, generations) = family(self.family())?;
        if self.0 & !bit::OF_WINDOWS_COLLATIONS != 0 || generations & generation.bit() == 0 {
            return None;
        }
        Some(format!("{family}{}{}", generation.suffix(), self.suffix(generation)?))
    }

    /// The collation with this name, in capital or small letters; `None` for a name that `sys.fn_helpcollations` does not
    /// list.
    pub fn named(name: &str) -> Option<Self> {
        let is_name = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some((id, _)) = SQL_COLLATIONS.iter().find(|(_, known)| is_name(known)) {
            return Some(Self(*id));
        }
        FAMILIES.iter().find_map(|(number, family, _)| {
            let (start, rest) = name.split_at_checked(family.len())?;
            if !start.eq_ignore_ascii_case(family) {
                return None;
            }
            Generation::ALL.iter().find_map(|generation| {
                let id = Self::of_words(*number, *generation, rest.get(generation.suffix().len()..)?)?;
                id.name().is_some_and(|known| is_name(&known)).then_some(id)
            })
        })
    }

    /// The ID of a collation from the parts of its name. `words` is the part after the generation, and begins with `_`.
    /// `None` if a word is unknown.
    fn of_words(family: u8, generation: Generation, words: &str) -> Option<Self> {
        let mut bits = bit::IGNORES_KANA | bit::IGNORES_WIDTH;
        if generation == Generation::Of140 {
            bits |= bit::SUPPLEMENTARY_CHARACTERS | bit::IGNORES_VARIATION_SELECTORS;
        }
        for word in words.to_ascii_uppercase().strip_prefix('_')?.split('_') {
            match word {
                "CI" => bits |= bit::IGNORES_CASE,
                "AI" => bits |= bit::IGNORES_ACCENTS,
                "CS" | "AS" => {}
                "KS" => bits &= !bit::IGNORES_KANA,
                "WS" => bits &= !bit::IGNORES_WIDTH,
                "SC" => bits |= bit::SUPPLEMENTARY_CHARACTERS,
                "VSS" => bits &= !bit::IGNORES_VARIATION_SELECTORS,
                "UTF8" => bits |= bit::UTF8,
                "BIN" => bits = bit::BINARY,
                "BIN2" => bits = bit::BINARY_2,
                _ => return None,
            }
        }
        Some(Self(u32::from(family) | (generation as u32) << 17 | bits))
    }

    /// The part of a Windows collation's name after the generation; `None` if no collation has this combination of
    /// flags.
    fn suffix(self, generation: Generation) -> Option<String> {
        let has = |bit: u32| self.0 & bit != 0;
        if self.is_bin() || self.is_bin2() {
            let is_one_of_both = self.is_bin() != self.is_bin2() && !has(bit::SENSITIVITY);
            return match (self.is_bin2(), self.is_utf8()) {
                _ if !is_one_of_both || generation == Generation::Of160 => None,
                (false, false) => Some("_BIN".to_owned()),
                (true, false) => Some("_BIN2".to_owned()),
                (true, true) if self.0 == LATIN1_GENERAL_100_BIN2_UTF8 => Some("_BIN2_UTF8".to_owned()),
                _ => None,
            };
        }
        let supplementary = has(bit::SUPPLEMENTARY_CHARACTERS);
        let ignores_selectors = has(bit::IGNORES_VARIATION_SELECTORS);
        let characters = match (generation, supplementary, ignores_selectors, self.is_utf8()) {
            (Generation::Of80, false, false, false) => "",
            (Generation::Of90 | Generation::Of100, false, false, false) => "",
            (Generation::Of90 | Generation::Of100, true, false, false) => "_SC",
            (Generation::Of90 | Generation::Of100 | Generation::Of160, true, false, true) => "_SC_UTF8",
            (Generation::Of140, true, true, false) => "",
            (Generation::Of140, true, true, true) => "_UTF8",
            (Generation::Of140, true, false, false) => "_VSS",
            (Generation::Of140, true, false, true) => "_VSS_UTF8",
            _ => return None,
        };
        let case = if has(bit::IGNORES_CASE) { "_CI" } else { "_CS" };
        let accents = if has(bit::IGNORES_ACCENTS) { "_AI" } else { "_AS" };
        let kana = if has(bit::IGNORES_KANA) { "" } else { "_KS" };
        let width = if has(bit::IGNORES_WIDTH) { "" } else { "_WS" };
        Some(format!("{case}{accents}{kana}{width}{characters}"))
    }
}

/// The only binary UTF-8 collation.
const LATIN1_GENERAL_100_BIN2_UTF8: u32 = 0x0004_0888;

/// The generation of a Windows collation, named after the number in the collation's name. Names of generation 80 have
/// no number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    Of80,
    Of90,
    Of100,
    Of140,
    Of160,
}

impl Generation {
    /// All generations, in the order of the numbers that collation IDs use for them.
    const ALL: [Self; 5] = [Self::Of80, Self::Of90, Self::Of100, Self::Of140, Self::Of160];

    fn of(id: CollationId) -> Option<Self> {
        Self::ALL.get(id.generation() as usize).copied()
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Of80 => "",
            Self::Of90 => "_90",
            Self::Of100 => "_100",
            Self::Of140 => "_140",
            Self::Of160 => "_160",
        }
    }

    /// The bit of the generation in the third column of `FAMILIES`.
    fn bit(self) -> u8 {
        match self {
            Self::Of80 => G80,
            Self::Of90 => G90,
            Self::Of100 => G100,
            Self::Of140 => G140,
            Self::Of160 => G160,
        }
    }
}

const G80: u8 = 1;
const G90: u8 = 2;
const G100: u8 = 4;
const G140: u8 = 8;
const G160: u8 = 16;

/// The name of a family and the bits of its generations.
fn family(family: u8) -> Option<(&'static str, u8)> {
    let at = FAMILIES.binary_search_by_key(&family, |(number, ..)| *number).ok()?;
    FAMILIES.get(at).map(|(_, name, generations)| (*name, *generations))
}

/// The number, name and generation bits of each family, ordered by number (docs/format/collations.md#names).
#[rustfmt::skip]
const FAMILIES: &[(u8, &str, u8)] = &[
    (1, "Arabic", G80 | G100),
    (2, "Dari", G100),
    (3, "Chinese_Taiwan_Stroke", G80),
    (4, "Czech", G80 | G100),
    (5, "Danish_Norwegian", G80),
    (6, "Yakut", G100),
    (7, "Greek", G80 | G100),
    (8, "Latin1_General", G80 | G100),
    (9, "Traditional_Spanish", G80 | G100),
    (10, "Finnish_Swedish", G80 | G100),
    (11, "French", G80 | G100),
    (12, "Hebrew", G80 | G100),
    (13, "Hungarian", G80 | G100),
    (14, "Icelandic", G80 | G100),
    (15, "Corsican", G100),
    (16, "Japanese", G80),
    (17, "Korean_Wansung", G80),
    (18, "Maori", G100),
    (19, "Polish", G80 | G100),
    (20, "Romanian", G80 | G100),
    (21, "Cyrillic_General", G80 | G100),
    (22, "Croatian", G80 | G100),
    (23, "Slovak", G80 | G100),
    (24, "Albanian", G80 | G100),
    (25, "Thai", G80 | G100),
    (26, "Turkish", G80 | G100),
    (27, "Ukrainian", G80 | G100),
    (28, "Slovenian", G80 | G100),
    (29, "Estonian", G80 | G100),
    (30, "Latvian", G80 | G100),
    (31, "Lithuanian", G80 | G100),
    (32, "Vietnamese", G80 | G100),
    (36, "Chinese_PRC", G80),
    (37, "Uighur", G100),
    (38, "Breton", G100),
    (40, "Modern_Spanish", G80 | G100),
    (41, "German_PhoneBook", G80 | G100),
    (42, "Hungarian_Technical", G80 | G100),
    (43, "Japanese_Unicode", G80),
    (45, "Georgian_Modern_Sort", G80 | G100),
    (46, "Chinese_PRC_Stroke", G80),
    (47, "Chinese_Taiwan_Bopomofo", G80),
    (48, "Japanese", G90),
    (49, "Chinese_PRC", G90),
    (50, "Chinese_PRC_Stroke", G90),
    (51, "Chinese_Taiwan_Bopomofo", G90),
    (52, "Chinese_Taiwan_Stroke", G90),
    (53, "Indic_General", G90 | G100),
    (55, "Kazakh", G90 | G100),
    (56, "Uzbek_Latin", G90 | G100),
    (57, "Tatar", G90 | G100),
    (58, "Macedonian_FYROM", G90 | G100),
    (59, "Syriac", G90 | G100),
    (60, "Divehi", G90 | G100),
    (62, "Chinese_Hong_Kong_Stroke", G90),
    (63, "Mohawk", G100),
    (64, "Korean", G90 | G100),
    (65, "Chinese_Traditional_Stroke_Count", G100),
    (66, "Chinese_Traditional_Bopomofo", G100),
    (67, "Chinese_Simplified_Pinyin", G100 | G160),
    (68, "Chinese_Simplified_Stroke_Order", G100 | G160),
    (69, "Chinese_Traditional_Pinyin", G100),
    (70, "Chinese_Traditional_Stroke_Order", G100),
    (71, "Danish_Greenlandic", G100),
    (72, "Japanese_XJIS", G100 | G140),
    (73, "Japanese_Bushu_Kakusu", G100 | G140),
    (74, "Norwegian", G100),
    (75, "Romansh", G100),
    (76, "Serbian_Latin", G100),
    (77, "Serbian_Cyrillic", G100),
    (78, "Bosnian_Latin", G100),
    (79, "Bosnian_Cyrillic", G100),
    (80, "Urdu", G100),
    (81, "Persian", G100),
    (82, "Mapudungan", G100),
    (83, "Upper_Sorbian", G100),
    (84, "Bashkir", G100),
    (85, "Maltese", G100),
    (86, "Sami_Norway", G100),
    (87, "Sami_Sweden_Finland", G100),
    (88, "Turkmen", G100),
    (89, "Bengali", G100),
    (90, "Assamese", G100),
    (91, "Pashto", G100),
    (92, "Tibetan", G100),
    (93, "Welsh", G100),
    (94, "Khmer", G100),
    (95, "Lao", G100),
    (96, "Frisian", G100),
    (97, "Tamazight", G100),
    (98, "Nepali", G100),
    (99, "Azeri_Latin", G100),
    (100, "Azeri_Cyrillic", G100),
];

/// The ID and name of each SQL collation, ordered by ID (docs/format/collations.md#names).
#[rustfmt::skip]
const SQL_COLLATIONS: &[(u32, &str)] = &[
    (0x1E00_0808, "SQL_Latin1_General_CP437_BIN2"),
    (0x1E01_0008, "SQL_Latin1_General_CP437_BIN"),
    (0x1F00_C008, "SQL_Latin1_General_CP437_CS_AS"),
    (0x2000_D008, "SQL_Latin1_General_CP437_CI_AS"),
    (0x2100_D008, "SQL_Latin1_General_Pref_CP437_CI_AS"),
    (0x2200_F008, "SQL_Latin1_General_CP437_CI_AI"),
    (0x2800_0808, "SQL_Latin1_General_CP850_BIN2"),
    (0x2801_0008, "SQL_Latin1_General_CP850_BIN"),
    (0x2900_C008, "SQL_Latin1_General_CP850_CS_AS"),
    (0x2A00_D008, "SQL_Latin1_General_CP850_CI_AS"),
    (0x2B00_D008, "SQL_Latin1_General_Pref_CP850_CI_AS"),
    (0x2C00_F008, "SQL_Latin1_General_CP850_CI_AI"),
    (0x3100_D008, "SQL_1xCompat_CP850_CI_AS"),
    (0x3300_C008, "SQL_Latin1_General_CP1_CS_AS"),
    (0x3400_D008, "SQL_Latin1_General_CP1_CI_AS"),
    (0x3500_D008, "SQL_Latin1_General_Pref_CP1_CI_AS"),
    (0x3600_F008, "SQL_Latin1_General_CP1_CI_AI"),
    (0x3700_C008, "SQL_AltDiction_CP850_CS_AS"),
    (0x3800_D008, "SQL_AltDiction_Pref_CP850_CI_AS"),
    (0x3900_F008, "SQL_AltDiction_CP850_CI_AI"),
    (0x3A00_D00A, "SQL_Scandinavian_Pref_CP850_CI_AS"),
    (0x3B00_C00A, "SQL_Scandinavian_CP850_CS_AS"),
    (0x3C00_D00A, "SQL_Scandinavian_CP850_CI_AS"),
    (0x3D00_D008, "SQL_AltDiction_CP850_CI_AS"),
    (0x5100_C008, "SQL_Latin1_General_CP1250_CS_AS"),
    (0x5200_D008, "SQL_Latin1_General_CP1250_CI_AS"),
    (0x5300_C004, "SQL_Czech_CP1250_CS_AS"),
    (0x5400_D004, "SQL_Czech_CP1250_CI_AS"),
    (0x5500_C00D, "SQL_Hungarian_CP1250_CS_AS"),
    (0x5600_D00D, "SQL_Hungarian_CP1250_CI_AS"),
    (0x5700_C013, "SQL_Polish_CP1250_CS_AS"),
    (0x5800_D013, "SQL_Polish_CP1250_CI_AS"),
    (0x5900_C014, "SQL_Romanian_CP1250_CS_AS"),
    (0x5A00_D014, "SQL_Romanian_CP1250_CI_AS"),
    (0x5B00_C016, "SQL_Croatian_CP1250_CS_AS"),
    (0x5C00_D016, "SQL_Croatian_CP1250_CI_AS"),
    (0x5D00_C017, "SQL_Slovak_CP1250_CS_AS"),
    (0x5E00_D017, "SQL_Slovak_CP1250_CI_AS"),
    (0x5F00_C01C, "SQL_Slovenian_CP1250_CS_AS"),
    (0x6000_D01C, "SQL_Slovenian_CP1250_CI_AS"),
    (0x6900_C008, "SQL_Latin1_General_CP1251_CS_AS"),
    (0x6A00_D008, "SQL_Latin1_General_CP1251_CI_AS"),
    (0x6B00_C01B, "SQL_Ukrainian_CP1251_CS_AS"),
    (0x6C00_D01B, "SQL_Ukrainian_CP1251_CI_AS"),
    (0x7100_C008, "SQL_Latin1_General_CP1253_CS_AS"),
    (0x7200_D008, "SQL_Latin1_General_CP1253_CI_AS"),
    (0x7800_C008, "SQL_MixDiction_CP1253_CS_AS"),
    (0x7A00_C008, "SQL_AltDiction2_CP1253_CS_AS"),
    (0x7C00_F008, "SQL_Latin1_General_CP1253_CI_AI"),
    (0x8100_C01A, "SQL_Latin1_General_CP1254_CS_AS"),
    (0x8200_D01A, "SQL_Latin1_General_CP1254_CI_AS"),
    (0x8900_C008, "SQL_Latin1_General_CP1255_CS_AS"),
    (0x8A00_D008, "SQL_Latin1_General_CP1255_CI_AS"),
    (0x9100_C008, "SQL_Latin1_General_CP1256_CS_AS"),
    (0x9200_D008, "SQL_Latin1_General_CP1256_CI_AS"),
    (0x9900_C008, "SQL_Latin1_General_CP1257_CS_AS"),
    (0x9A00_D008, "SQL_Latin1_General_CP1257_CI_AS"),
    (0x9B00_C01D, "SQL_Estonian_CP1257_CS_AS"),
    (0x9C00_D01D, "SQL_Estonian_CP1257_CI_AS"),
    (0x9D00_C01E, "SQL_Latvian_CP1257_CS_AS"),
    (0x9E00_D01E, "SQL_Latvian_CP1257_CI_AS"),
    (0x9F00_C01F, "SQL_Lithuanian_CP1257_CS_AS"),
    (0xA000_D01F, "SQL_Lithuanian_CP1257_CI_AS"),
    (0xB700_D005, "SQL_Danish_Pref_CP1_CI_AS"),
    (0xB800_D00A, "SQL_SwedishPhone_Pref_CP1_CI_AS"),
    (0xB900_D00A, "SQL_SwedishStd_Pref_CP1_CI_AS"),
    (0xBA00_D00E, "SQL_Icelandic_Pref_CP1_CI_AS"),
    (0xD200_C008, "SQL_EBCDIC037_CP1_CS_AS"),
    (0xD300_C029, "SQL_EBCDIC273_CP1_CS_AS"),
    (0xD400_C005, "SQL_EBCDIC277_CP1_CS_AS"),
    (0xD500_C00A, "SQL_EBCDIC278_CP1_CS_AS"),
    (0xD600_C008, "SQL_EBCDIC280_CP1_CS_AS"),
    (0xD700_C028, "SQL_EBCDIC284_CP1_CS_AS"),
    (0xD800_C008, "SQL_EBCDIC285_CP1_CS_AS"),
    (0xD900_C00B, "SQL_EBCDIC297_CP1_CS_AS"),
    (0xDA00_C005, "SQL_EBCDIC277_2_CP1_CS_AS"),
    (0xDB00_C029, "SQL_EBCDIC1141_CP1_CS_AS"),
];

#[cfg(test)]
mod tests;
