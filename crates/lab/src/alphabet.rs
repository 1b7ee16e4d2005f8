//! Alphabets of languages in which the order of the letters is not that of ASCII, and databases that contain names in
//! these alphabets.
//!
//! The letters have the order that schools teach. This order was not taken from a table of sort weights. Therefore a
//! program that reads such a database can be tested: its table of sort weights must agree with the order of the names.

use crate::description::{Column, Description, Filegroup, Index, Table, Values};
use crate::page::PageVerify;
use crate::sample::Sample;
use crate::types::SqlType;
use crate::version::Version;

/// Collations for which this module contains an alphabet, each with its name.
pub const COLLATIONS: [(u32, &str); 4] =
    [(0xD007, "Greek"), (0xD015, "Cyrillic"), (0xD01A, "Turkish"), (0xD020, "Vietnamese")];

/// The letters that the lab uses for all other collations.
const ASCII: &[&str] = &[
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
    "x", "y", "z",
];

/// Returns the lower-case letters of a collation, in their order. `None` for a collation for which the lab writes only
/// ASCII letters, in ASCII order.
fn letters(collation: u32) -> Option<&'static [&'static str]> {
    Some(match collation {
        0xD007 => &[
            "α", "β", "γ", "δ", "ε", "ζ", "η", "θ", "ι", "κ", "λ", "μ", "ν", "ξ", "ο", "π", "ρ", "σ", "τ", "υ", "φ",
            "χ", "ψ", "ω",
        ],
        0xD015 => &[
            "а", "б", "в", "г", "д", "е", "ж", "з", "и", "к", "л", "м", "н", "о", "п", "р", "с", "т", "у", "ф", "х",
            "ц", "ч", "ш", "щ", "ъ", "ы", "ь", "э", "ю", "я",
        ],
        0xD01A => &[
            "a", "b", "c", "ç", "d", "e", "f", "g", "ğ", "h", "ı", "i", "j", "k", "l", "m", "n", "o", "ö", "p", "q",
            "r", "s", "ş", "t", "u", "ü", "v", "w", "x", "y", "z",
        ],
        // Letters with diacritics are left out: their place in the order has not been confirmed with keys of real
        // databases.
        0xD020 => &[
            "a", "b", "c", "ch", "d", "e", "f", "g", "gi", "h", "i", "j", "k", "kh", "l", "m", "n", "ng", "nh", "o",
            "p", "ph", "q", "qu", "r", "s", "t", "th", "tr", "u", "v", "w", "x", "y", "z",
        ],
        _ => return None,
    })
}

/// Returns the position of a text's first letter in the alphabet, and the number of characters that form this letter.
/// `None` if the collation has no alphabet here, or the alphabet does not contain the letter.
pub(crate) fn place(collation: u32, text: &[u16]) -> Option<(usize, usize)> {
    let letters = letters(collation)?;
    // If two letters of the alphabet match, the longer one is used: `ngh` consists of the letters `ng` and `h`.
    (1..=text.len().min(2)).rev().find_map(|length| {
        let start: String = char::decode_utf16(text.iter().take(length).copied()).collect::<Result<_, _>>().ok()?;
        // In Turkish, the capital of the dotless letter i is `I`, and the capital of the letter i with a dot has a dot,
        // too.
        let small = if collation == 0xD01A { start.replace('I', "ı").replace('İ', "i") } else { start };
        let small = small.to_lowercase();
        Some((letters.iter().position(|letter| *letter == small)?, length))
    })
}

/// Describes a database with a table of `rows` names. The names consist of letters of the default collation
/// `collation`, which is one of [`COLLATIONS`] or a collation with the order of ASCII.
pub fn names(collation: u32, rows: usize, seed: u64) -> Description {
    let letters = letters(collation).unwrap_or(ASCII);
    let nvarchar = SqlType::nvarchar(40);
    // Each name has six letters. The positions of these letters in the alphabet are the last six digits of a product,
    // in a number system with one digit for each letter. No name is repeated before all names of six letters have been
    // used.
    let name = |row: usize| -> String {
        let mut number = (row + 1).wrapping_mul(1_234_567);
        let digits = (0..6).map(|_| {
            let digit = number % letters.len();
            number /= letters.len();
            digit
        });
        digits.filter_map(|digit| letters.get(digit)).copied().collect()
    };
    let samples: Vec<Sample> = (0..rows).map(|row| Sample::text(nvarchar, &name(row))).collect();
    let table = Table {
        name: "names".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("name", nvarchar, Values::Listed(samples.into())),
        ],
        clustered: Some(Index::on("pk_names", &[0]).primary_key()),
        indexes: vec![
            Index::on("ix_names", &[1]),
            Index { keys: vec![(1, true)], name: "ix_names_down".to_owned(), ..Index::default() },
        ],
        rows: rows as u64,
        ..Table::default()
    };
    database(table, collation, seed)
}

/// Describes a database with a table of `rows` people and an index on their names. The names are Vietnamese names,
/// written without accents.
pub fn people(collation: u32, rows: usize, seed: u64) -> Description {
    const FAMILY: [&str; 14] =
        ["Nguyen", "Tran", "Le", "Pham", "Hoang", "Phan", "Vu", "Dang", "Bui", "Do", "Ho", "Ngo", "Duong", "Ly"];
    const MIDDLE: [&str; 12] =
        ["Thi", "Van", "Huu", "Duc", "Ngoc", "Minh", "Quang", "Thanh", "Xuan", "Kim", "Thuy", "Gia"];
    const GIVEN: [&str; 20] = [
        "Anh", "Binh", "Chi", "Cuong", "Dung", "Giang", "Ha", "Hien", "Hung", "Khanh", "Lan", "Linh", "Mai", "Nam",
        "Nga", "Phuong", "Quyen", "Son", "Trang", "Yen",
    ];
    let nvarchar = SqlType::nvarchar(60);
    let name = |row: usize| -> String {
        let number = row.wrapping_mul(2_654_435_761) >> 3;
        let of = |list: &[&'static str], number: usize| list.get(number % list.len()).copied().unwrap_or_default();
        let (family, middle) = (of(&FAMILY, number), of(&MIDDLE, number / 14));
        format!("{family} {middle} {} {}", of(&GIVEN, number / 168), of(&GIVEN, number / 3360))
    };
    let samples: Vec<Sample> = (0..rows).map(|row| Sample::text(nvarchar, &name(row))).collect();
    let table = Table {
        name: "people".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("name", nvarchar, Values::Listed(samples.into())),
            Column::new("born", SqlType::DATETIME, Values::Uniform { low: 20_000, high: 40_000 }),
            Column::new("phone", SqlType::varchar(12), Values::Text { least: 9, most: 12 }),
            Column::new("city", SqlType::INT, Values::Uniform { low: 1, high: 63 }),
            Column::new("note", SqlType::nvarchar(60), Values::Text { least: 10, most: 40 }),
        ],
        clustered: Some(Index::on("pk_people", &[0]).primary_key()),
        indexes: vec![Index::on("ix_people_name", &[1])],
        rows: rows as u64,
        ..Table::default()
    };
    database(table, collation, seed)
}

/// A database with one table.
fn database(table: Table, collation: u32, seed: u64) -> Description {
    Description {
        name: table.name.clone(),
        version: Version::V904,
        collation,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: 0,
    }
}
