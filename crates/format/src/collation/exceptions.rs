//! The characters that locales move. Their new places are unknown and the default order may be wrong for them, so this
//! list only makes comparisons undecided (docs/format/collations.md#locales).

use super::CollationId;

/// The differences between a locale and the default order, in any generation.
pub(super) struct Exceptions {
    family: u8,
    /// The characters below U+2000 that have a different place.
    moved: &'static str,
    /// Whether some characters from U+2000 on have a different place.
    moves_above: bool,
    /// Whether a letter and the combining mark on it may be one letter of the alphabet.
    pub(super) joins_marks: bool,
}

impl Exceptions {
    /// The exceptions of a collation's locale; `None` if they are unknown.
    pub(super) fn of(collation: CollationId) -> Option<&'static Self> {
        let at = PLACES.get(usize::from(collation.locale())).copied().unwrap_or_default();
        LOCALES.get(usize::from(at))
    }

    /// Whether the locale may give a character a place that differs from the default order.
    pub(super) fn move_unit(&self, unit: u16) -> bool {
        match unit {
            ..0x80 => false,
            0x2000.. if self.moves_above => true,
            // This range has the letters with two marks. All of these letters are Vietnamese.
            0x1EA0..=0x1EF9 if self.family == super::locales::VIETNAMESE => true,
            _ => self.moved.chars().any(|moved| u32::from(moved) == unit.into()),
        }
    }
}

/// For each family, its index in [`LOCALES`]; `u8::MAX` for a family that is not in that list.
#[expect(clippy::indexing_slicing, reason = "a constant, by each family")]
const PLACES: [u8; 256] = {
    let mut places = [u8::MAX; 256];
    let mut at = 0;
    while at < LOCALES.len() {
        places[LOCALES[at].family as usize] = at as u8;
        at += 1;
    }
    places
};

const fn locale(family: u8, moved: &'static str, moves_above: bool, joins_marks: bool) -> Exceptions {
    Exceptions { family, moved, moves_above, joins_marks }
}

/// The list does not have Yakut, Corsican, Breton and Hungarian_Technical, because too little is known about these
/// locales. It does not have the locales that were added after generation 80 either.
static LOCALES: [Exceptions; 34] = [
    // Arabic.
    locale(1, "", false, false),
    // Dari.
    locale(2, "آهيځڅږښک", true, true),
    // Chinese_Taiwan_Stroke.
    locale(3, "", true, false),
    // Czech.
    locale(4, "ÄËÏÖÜäëïöüÿĊċČčĖėĠġİĿŀŘřŠšŸŻżŽž\u{308}", false, true),
    // Danish_Norwegian.
    locale(5, "ÄÅÆÖØÜäåæöøüĸŐőŰűǢǣ", false, true),
    // Greek.
    locale(7, "", false, false),
    // Latin1_General.
    locale(8, "", false, false),
    // Traditional_Spanish.
    locale(9, "Ññ", false, true),
    // Finnish_Swedish.
    locale(10, "ÄÅÖØÜäåöøüŐőŰűŴŵƿ", false, true),
    // French.
    locale(11, "", false, false),
    // Hebrew.
    locale(12, "", false, false),
    // Hungarian.
    locale(13, "ÖÜöüŐőŰűǱǲǳ", false, true),
    // Icelandic.
    locale(14, "ÁÆÉÍÐÓÖØÚÝÞáæéíðóöøúýþǢǣ", false, true),
    // Japanese.
    locale(16, "", true, false),
    // Korean_Wansung.
    locale(17, "", true, false),
    // Polish.
    locale(19, "ÓóĄąĆćĘęŁłŃńŚśŹźŻż", false, true),
    // Romanian.
    locale(20, "ÂÎâîĂăŞşŢţȘșȚț", false, true),
    // Cyrillic_General.
    locale(21, "Йй", false, true),
    // Croatian.
    locale(22, "ĂăĆćČčĎďĐđĔĕĚěĞğĬĭĽľŇňŎŏŘřŠšŤťŬŭŽžǄǅǆǇǈǉǊǋǌǍǎǏǐǑǒǓǔǦǧǨǩǮǯǰ\u{306}\u{30C}", false, true),
    // Slovak.
    locale(23, "ÄËÏÔÖÜäëïôöüÿĊċČčĖėĠġİĿŀŘřŠšŸŻżŽž\u{308}", false, true),
    // Albanian.
    locale(24, "ÇËÞçëþǊǋǌʏ", true, true),
    // Thai.
    locale(25, "", false, true),
    // Turkish.
    locale(26, "ÇÖÜçöüĞğİıŞş", true, true),
    // Ukrainian.
    locale(27, "ЇЙЬйьїӚӛӸӹ", false, true),
    // Slovenian.
    locale(28, "ĆćČčĐđŚśŠšŹźŽž", false, true),
    // Estonian.
    locale(29, "ÄÕÖÜäõöüŠšŹźŻżŽžſ", false, true),
    // Latvian.
    locale(30, "ĀāČčĒēĢģĪīĶķĻļŅņŌōŖŗŠšŪūŽž", false, true),
    // Lithuanian.
    locale(31, "ĄąČčĖėĘęĮįŠšŲųŽž", true, true),
    // Vietnamese.
    locale(
        32,
        "ÀÁÂÃÈÉÊÌÍÎÒÓÔÕÙÚÛÝÞàáâãèéêìíîòóôõùúûýþĂăĐđĨĩŨũƠơƯư\u{300}\u{301}\u{303}\u{309}\u{323}\u{340}\u{341}",
        false,
        true,
    ),
    // Chinese_PRC.
    locale(36, "", true, false),
    // Modern_Spanish.
    locale(40, "Ññ", false, true),
    // German_PhoneBook.
    locale(41, "ÄÖÜäöü", false, false),
    // Chinese_PRC_Stroke.
    locale(46, "", true, false),
    // Chinese_Taiwan_Bopomofo.
    locale(47, "", true, false),
];
