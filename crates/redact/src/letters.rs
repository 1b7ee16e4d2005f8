//! The characters of texts: which ones are replaced, and which ones collations may compare as the same letter.

use format::collation::{CollationId, UTF_8, append_utf16, code_page, has_one_byte_per_character};

/// How a text is stored, and by which collation it is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// char and varchar.
    Ansi(CollationId),
    /// nchar and nvarchar.
    Unicode(CollationId),
    /// binary and varbinary: each byte counts as a character.
    Bytes,
}

impl Form {
    /// A number that identifies the form.
    pub(crate) fn id(self) -> u64 {
        match self {
            Self::Ansi(collation) => u64::from(collation.0) << 2 | 1,
            Self::Unicode(collation) => u64::from(collation.0) << 2 | 2,
            Self::Bytes => 0,
        }
    }

    pub(crate) fn collation(self) -> CollationId {
        match self {
            Self::Ansi(collation) | Self::Unicode(collation) => collation,
            Self::Bytes => CollationId(0),
        }
    }

    /// Whether different cases of a letter are different letters, ordered by their codes.
    fn is_by_code(self) -> bool {
        self.collation().is_bin() || self.collation().is_bin2()
    }

    /// The number of bytes of a character, as far as it is constant.
    pub(crate) fn width(self) -> usize {
        if matches!(self, Self::Unicode(_)) { 2 } else { 1 }
    }
}

/// A character of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Character {
    /// The offset of its first byte.
    pub(crate) at: usize,
    pub(crate) kind: CharacterKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CharacterKind {
    /// A character that stays and that has no place among the letters: a blank, a symbol, a control character.
    Mark,
    /// An ASCII letter or digit, or a byte. The number is the letter that stands for it in a path.
    Plain(u16),
    /// Another letter, with the one or two letters that stand for it in a path: its base letter if it has one.
    Other([u16; 2]),
}

/// Calls `add` with each character of a text.
pub(crate) fn each_character(form: Form, text: &[u8], mut add: impl FnMut(Character)) {
    let by_code = form.is_by_code();
    let of_unit = |at: usize, unit: u16| Character { at, kind: kind_of(unit, by_code) };
    match form {
        Form::Bytes => text.iter().enumerate().for_each(|(at, byte)| {
            add(Character { at, kind: CharacterKind::Plain((*byte).into()) });
        }),
        Form::Unicode(_) => {
            let units = text.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            units.enumerate().for_each(|(at, unit)| add(of_unit(2 * at, unit)));
        }
        Form::Ansi(collation) if text.is_ascii() || has_one_byte_per_character(collation) => {
            let mut unit = Vec::with_capacity(2);
            for (at, byte) in text.iter().enumerate() {
                unit.clear();
                let is_known = byte.is_ascii() || append_utf16(&[*byte], collation, &mut unit);
                match unit.first_chunk().filter(|_| is_known) {
                    Some(unit) => add(of_unit(at, u16::from_le_bytes(*unit))),
                    None if byte.is_ascii() => add(of_unit(at, (*byte).into())),
                    None => add(Character { at, kind: CharacterKind::Other([u16::from(*byte) | 0xFF00, 0]) }),
                }
            }
        }
        Form::Ansi(collation) => several_bytes(collation, text, |at, unit| add(of_unit(at, unit))),
    }
}

/// The characters of a text in a code page with more than one byte per character. Only ASCII
/// and the characters of UTF-8 are known; the others count as marks.
fn several_bytes(collation: CollationId, text: &[u8], mut add: impl FnMut(usize, u16)) {
    const MARK: u16 = b' ' as u16;
    if let (Some(UTF_8), Ok(text)) = (code_page(collation), std::str::from_utf8(text)) {
        return text.char_indices().for_each(|(at, letter)| add(at, u16::try_from(letter as u32).unwrap_or(MARK)));
    }
    let mut after_lead = false;
    for (at, byte) in text.iter().enumerate() {
        match (after_lead, byte.is_ascii()) {
            (false, true) => add(at, (*byte).into()),
            // The second byte of a character may be an ASCII code.
            _ => add(at, MARK),
        }
        after_lead = !after_lead && !byte.is_ascii();
    }
}

fn kind_of(unit: u16, by_code: bool) -> CharacterKind {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => {
            return CharacterKind::Plain(if by_code { unit } else { byte.to_ascii_lowercase().into() });
        }
        Ok(0..0x80) => return CharacterKind::Mark,
        _ => {}
    }
    let Some(letter) = char::from_u32(unit.into()) else { return CharacterKind::Mark };
    if by_code {
        return CharacterKind::Other([unit, 0]);
    }
    let pair = |first: u8, second: u8| CharacterKind::Other([first.into(), second.into()]);
    match letter {
        'ß' => pair(b's', b's'),
        'Æ' | 'æ' => pair(b'a', b'e'),
        'Œ' | 'œ' => pair(b'o', b'e'),
        'Þ' | 'þ' => pair(b't', b'h'),
        'Ĳ' | 'ĳ' => pair(b'i', b'j'),
        '\u{FF10}'..='\u{FF19}' => pair(b'0' + (unit - 0xFF10) as u8, 0),
        '\u{FF21}'..='\u{FF3A}' => pair(b'a' + (unit - 0xFF21) as u8, 0),
        '\u{FF41}'..='\u{FF5A}' => pair(b'a' + (unit - 0xFF41) as u8, 0),
        _ => match base_of(letter) {
            Some(base) => CharacterKind::Other([base, 0]),
            None if letter.is_alphanumeric() => {
                let lower = letter.to_lowercase().next().and_then(|lower| u16::try_from(lower as u32).ok());
                CharacterKind::Other([lower.unwrap_or(unit), 0])
            }
            None => CharacterKind::Mark,
        },
    }
}

/// The ASCII letter below the accents of a letter, in lower case.
fn base_of(letter: char) -> Option<u16> {
    if !matches!(letter, '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}') {
        return None;
    }
    let mut pairs = BASES.chars();
    while let (Some(accented), Some(base)) = (pairs.next(), pairs.next()) {
        if accented == letter {
            return u16::try_from(base as u32).ok();
        }
    }
    None
}

/// Ranges of letters without base letters. A letter of one of these ranges may be replaced by another one of the same
/// range. The capital and the small letters of a script have ranges of equal length.
const RANGES: [(u16, u16); 8] = [
    (0x0410, 0x042F),
    (0x0430, 0x044F),
    (0x05D0, 0x05EA),
    (0x0627, 0x063A),
    (0x0641, 0x0648),
    (0x0E01, 0x0E2E),
    (0x4E00, 0x9FA5),
    (0xAC00, 0xD7A3),
];

/// The range of letters from which a letter that is not ASCII may be replaced.
pub(crate) fn range_of(unit: u16) -> Option<(u16, u16)> {
    RANGES.into_iter().find(|(first, last)| (*first..=*last).contains(&unit))
}

/// The letter that `random` chooses from a range, without `old`.
pub(crate) fn other_letter(old: u16, (first, last): (u16, u16), random: u64) -> u16 {
    let count = u64::from(last.saturating_sub(first)) + 1;
    let step = 1 + random.checked_rem(count.saturating_sub(1)).unwrap_or_default();
    first + ((u64::from(old.saturating_sub(first)) + step) % count) as u16
}

/// Pairs of a letter with accents and its base letter in lower case.
static BASES: &str = "\
    ÀaÁaÂaÃaÄaÅaÇcÈeÉeÊeËeÌiÍiÎiÏiÑnÒoÓoÔoÕoÖoÙuÚuÛuÜuÝyàaáaâaãaäaåaçcèeéeêeëeìiíiîiïiñnòoóoôoõoöoùuúuûu\
    üuýyÿyĀaāaĂaăaĄaąaĆcćcĈcĉcĊcċcČcčcĎdďdĒeēeĔeĕeĖeėeĘeęeĚeěeĜgĝgĞgğgĠgġgĢgģgĤhĥhĨiĩiĪiīiĬiĭiĮiįiİiĴjĵj\
    ĶkķkĹlĺlĻlļlĽlľlŃnńnŅnņnŇnňnŌoōoŎoŏoŐoőoŔrŕrŖrŗrŘrřrŚsśsŜsŝsŞsşsŠsšsŢtţtŤtťtŨuũuŪuūuŬuŭuŮuůuŰuűuŲuųu\
    ŴwŵwŶyŷyŸyŹzźzŻzżzŽzžzƠoơoƯuưuǍaǎaǏiǐiǑoǒoǓuǔuǕuǖuǗuǘuǙuǚuǛuǜuǞaǟaǠaǡaǦgǧgǨkǩkǪoǫoǬoǭoǰjǴgǵgǸnǹnǺaǻa\
    ȀaȁaȂaȃaȄeȅeȆeȇeȈiȉiȊiȋiȌoȍoȎoȏoȐrȑrȒrȓrȔuȕuȖuȗuȘsșsȚtțtȞhȟhȦaȧaȨeȩeȪoȫoȬoȭoȮoȯoȰoȱoȲyȳyḀaḁaḂbḃbḄbḅb\
    ḆbḇbḈcḉcḊdḋdḌdḍdḎdḏdḐdḑdḒdḓdḔeḕeḖeḗeḘeḙeḚeḛeḜeḝeḞfḟfḠgḡgḢhḣhḤhḥhḦhḧhḨhḩhḪhḫhḬiḭiḮiḯiḰkḱkḲkḳkḴkḵkḶlḷl\
    ḸlḹlḺlḻlḼlḽlḾmḿmṀmṁmṂmṃmṄnṅnṆnṇnṈnṉnṊnṋnṌoṍoṎoṏoṐoṑoṒoṓoṔpṕpṖpṗpṘrṙrṚrṛrṜrṝrṞrṟrṠsṡsṢsṣsṤsṥsṦsṧsṨsṩs\
    ṪtṫtṬtṭtṮtṯtṰtṱtṲuṳuṴuṵuṶuṷuṸuṹuṺuṻuṼvṽvṾvṿvẀwẁwẂwẃwẄwẅwẆwẇwẈwẉwẊxẋxẌxẍxẎyẏyẐzẑzẒzẓzẔzẕzẖhẗtẘwẙyẠaạa\
    ẢaảaẤaấaẦaầaẨaẩaẪaẫaẬaậaẮaắaẰaằaẲaẳaẴaẵaẶaặaẸeẹeẺeẻeẼeẽeẾeếeỀeềeỂeểeỄeễeỆeệeỈiỉiỊiịiỌoọoỎoỏoỐoốoỒoồo\
    ỔoổoỖoỗoỘoộoỚoớoỜoờoỞoởoỠoỡoỢoợoỤuụuỦuủuỨuứuỪuừuỬuửuỮuữuỰuựuỲyỳyỴyỵyỶyỷyỸyỹyđdĐdøoØołlŁlıiðdÐdħhĦhŧt\
    ŦtŋnŊnſsĸkƒf";

#[cfg(test)]
mod tests {
    use super::*;

    fn path(form: Form, text: &[u8]) -> String {
        let mut path = String::new();
        each_character(form, text, |character| match character.kind {
            CharacterKind::Mark => {}
            CharacterKind::Plain(unit) => path.extend(char::from_u32(unit.into())),
            CharacterKind::Other(units) => {
                path.extend(units.into_iter().filter(|unit| *unit != 0).filter_map(|unit| char::from_u32(unit.into())));
            }
        });
        path
    }

    #[test]
    fn letters_that_may_compare_as_equal_have_equal_paths() {
        let latin = CollationId(0x3400_D008);
        let unicode = |text: &str| {
            path(Form::Unicode(latin), &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
        };
        assert_eq!(unicode("Straße 5-b"), unicode("STRASSE 5b"));
        assert_eq!(unicode("Đà Nẵng"), "danang");
        assert_eq!(path(Form::Ansi(latin), b"caf\xE9"), "cafe");
        assert_eq!(unicode("Ｔｏｋｙｏ"), "tokyo");
    }
}
