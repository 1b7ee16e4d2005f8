//! Alphabets of languages whose order is not that of ASCII, and databases of names in them.
//!
//! The order is that of the alphabets that schools teach, not that of a table of weights: a reader's tables must agree
//! with it.

use crate::description::{Column, Description, Filegroup, Index, Table, Values};
use crate::page::PageVerify;
use crate::sample::Sample;
use crate::types::SqlType;
use crate::version::Version;

/// Collations with an alphabet here, each with its name.
pub const COLLATIONS: [(u32, &str); 4] =
    [(0xD007, "Greek"), (0xD015, "Cyrillic"), (0xD01A, "Turkish"), (0xD020, "Vietnamese")];

/// The names in a database.
const NAMES: usize = 4000;

/// The letters of a collation in their order, small; `None` if its order is that of ASCII, as far as the lab writes it.
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
        // Without the letters that have accents of their own: their place was not confirmed by real keys.
        0xD020 => &[
            "a", "b", "c", "ch", "d", "e", "f", "g", "gi", "h", "i", "j", "k", "kh", "l", "m", "n", "ng", "nh", "o",
            "p", "ph", "q", "qu", "r", "s", "t", "th", "tr", "u", "v", "w", "x", "y", "z",
        ],
        _ => return None,
    })
}

/// The place of the letter with which a text begins, and its length in characters.
pub(crate) fn place(collation: u32, text: &[u16]) -> Option<(usize, usize)> {
    let letters = letters(collation)?;
    // The longest letter counts: `ngh` is ng and h.
    (1..=text.len().min(2)).rev().find_map(|length| {
        let start: String = char::decode_utf16(text.iter().take(length).copied()).collect::<Result<_, _>>().ok()?;
        // The capital of the Turkish dotless i is I, and that of i has a dot.
        let small = if collation == 0xD01A { start.replace('I', "ı").replace('İ', "i") } else { start };
        let small = small.to_lowercase();
        Some((letters.iter().position(|letter| *letter == small)?, length))
    })
}

/// A database whose default collation is one of [`COLLATIONS`], with a table of names in its letters.
pub fn names(collation: u32, seed: u64) -> Description {
    let letters = letters(collation).unwrap_or(&["a", "b"]);
    let nvarchar = SqlType::nvarchar(40);
    // Each name has six letters; their numbers are the digits of a product that visits all names before it repeats one.
    let name = |row: usize| -> String {
        let mut number = (row + 1).wrapping_mul(1_234_567);
        let digits = (0..6).map(|_| {
            let digit = number % letters.len();
            number /= letters.len();
            digit
        });
        digits.filter_map(|digit| letters.get(digit)).copied().collect()
    };
    let samples: Vec<Sample> = (0..NAMES).map(|row| Sample::text(nvarchar, &name(row))).collect();
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
        rows: NAMES as u64,
        ..Table::default()
    };
    Description {
        name: "names".to_owned(),
        version: Version::V904,
        collation,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables: vec![table],
        least_pages: 0,
    }
}
