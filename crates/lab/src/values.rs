//! Generates the rows of a table. The row number determines all values of a row.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::description::{Column, Expression, Filter, Table, Values};
use crate::plain;
use crate::random::{Shuffle, mix};
use crate::row::Row;
use crate::sample::Sample;
use crate::types::{SqlType, Storage};

const WORDS: usize = 1 << 16;

/// Generates the rows of a table.
#[derive(Clone)]
pub(crate) struct Rows<'a> {
    columns: Cow<'a, [Column]>,
    count: u64,
    seeds: Vec<u64>,
    shuffles: Vec<Option<Shuffle>>,
    seed: u64,
    /// A long text; generated text values are parts of it. It is generated only when it is needed, because most tables
    /// of a large database are empty and do not need it.
    words: OnceCell<Vec<u8>>,
    wide_words: OnceCell<Vec<u8>>,
}

impl<'a> Rows<'a> {
    /// Creates the generator for the rows of `table`. `seed` determines the values.
    pub(crate) fn new(table: &'a Table, seed: u64) -> Self {
        Self::of(Cow::Borrowed(&table.columns), table, seed)
    }

    /// Like [`Self::new`], but keeps its own copy of the columns.
    pub(crate) fn owned(table: &Table, seed: u64) -> Self {
        Self::of(Cow::Owned(table.columns.clone()), table, seed)
    }

    fn of(columns: Cow<'a, [Column]>, table: &Table, seed: u64) -> Self {
        let seeds: Vec<u64> = (0..table.columns.len() as u64).map(|column| mix(seed ^ mix(column + 1))).collect();
        let shuffles = table.columns.iter().zip(&seeds).map(|(column, &seed)| match column.values {
            Values::Scattered { .. } => Some(Shuffle::new(table.rows, seed)),
            _ => None,
        });
        let shuffles = shuffles.collect();
        let (words, wide_words) = Default::default();
        Self { columns, count: table.rows, seeds, shuffles, seed, words, wide_words }
    }

    /// Number of rows.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the shuffle that scatters the values of a column; `None` if its values are not scattered.
    pub(crate) fn shuffle(&self, column: usize) -> Option<&Shuffle> {
        self.shuffles.get(column).and_then(Option::as_ref)
    }

    /// Generates row `n`.
    pub(crate) fn fill(&self, n: u64, row: &mut Row) {
        self.fill_only(n, |_| true, row);
    }

    /// Generates row `n`, but only the columns for which `wanted` returns true. All other columns are NULL.
    pub(crate) fn fill_only(&self, n: u64, wanted: impl Fn(usize) -> bool, row: &mut Row) {
        row.clear();
        for (at, column) in self.columns.iter().enumerate() {
            if !wanted(at) {
                row.push_null();
                continue;
            }
            match &column.computed {
                Some(computed) => match self.compute(&computed.expression, n) {
                    Some(number) => row.push(&number.to_le_bytes()),
                    None => row.push_null(),
                },
                None => self.fill_column(at, column, n, row),
            }
        }
    }

    fn fill_column(&self, at: usize, column: &Column, n: u64, row: &mut Row) {
        if self.is_null(at, n) {
            return row.push_null();
        }
        let dice = mix(self.seeds[at] ^ n);
        match (&column.values, self.number(at, n)) {
            (_, Some(number)) => row.push_with(|out| column.ty.encode_number(number, out)),
            (Values::Text { least, most }, None) => {
                let length = between(*least, *most, dice >> 8);
                row.push_with(|out| self.push_text(column.ty, length, dice >> 20, out));
            }
            (Values::Bytes { least, most }, None) => {
                let length = between(*least, *most, dice >> 8);
                row.push_with(|out| push_bytes(column.ty, length, dice, out));
            }
            (Values::Listed(samples), None) => match samples.get((n % samples.len().max(1) as u64) as usize) {
                Some(Sample { bytes: Some(bytes), .. }) => row.push(bytes),
                _ => row.push_null(),
            },
            _ => row.push_null(),
        }
    }

    /// Row `n` as plain text, in column order; see [`crate::truth`].
    pub(crate) fn truth(&self, n: u64) -> Vec<Option<String>> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(at, column)| self.truth_of(at, column, n)).collect()
    }

    fn truth_of(&self, at: usize, column: &Column, n: u64) -> Option<String> {
        if let Some(computed) = &column.computed {
            return Some(self.compute(&computed.expression, n)?.to_string());
        }
        if self.is_null(at, n) {
            return None;
        }
        let dice = mix(self.seeds[at] ^ n);
        match (&column.values, self.number(at, n)) {
            (_, Some(number)) => Some(plain::number(column.ty, number)),
            (Values::Text { least, most }, None) => {
                // The words are ASCII, so the text is the same for every string type.
                let mut text = Vec::new();
                self.push_text(SqlType::VARCHAR_MAX, between(*least, *most, dice >> 8), dice >> 20, &mut text);
                if let Storage::Fixed(size) = column.ty.storage() {
                    text.resize(usize::from(size) / if column.ty.is_unicode() { 2 } else { 1 }, b' ');
                }
                Some(text.into_iter().map(char::from).collect())
            }
            (Values::Bytes { least, most }, None) => {
                let length = between(*least, *most, dice >> 8);
                if column.ty.xtype == 241 {
                    return Some(format!("<a>{}</a>", "x".repeat(length / 2)));
                }
                let mut bytes = Vec::new();
                push_bytes(column.ty, length, dice, &mut bytes);
                Some(plain::hex(&bytes))
            }
            (Values::Listed(samples), None) => {
                samples.get((n % samples.len().max(1) as u64) as usize).and_then(|sample| sample.text.clone())
            }
            _ => None,
        }
    }

    /// Returns the number from which the value of a column in row `n` is generated. `None` if the value is not
    /// generated from a number.
    fn number(&self, at: usize, n: u64) -> Option<i64> {
        let signed = n as i64;
        let column = self.columns.get(at)?;
        if n < column.life.since {
            return column.default.filter(|_| column.life.keeps_default).map(i64::from);
        }
        Some(match &column.values {
            Values::Serial { start, step } => start + step * signed,
            Values::Grouped { start, per } => start + (n / (*per).max(1)) as i64,
            Values::Within { start, per } => start + (n % (*per).max(1)) as i64,
            Values::Scattered { per } => (self.shuffle(at)?.to(n) / (*per).max(1)) as i64,
            Values::Uniform { low, high } => {
                let span = (high - low) as u64 + 1;
                low + (mix(self.seeds[at] ^ n ^ 0x5555) % span) as i64
            }
            Values::Text { .. } | Values::Bytes { .. } | Values::Listed(_) => return None,
        })
    }

    fn is_null(&self, at: usize, n: u64) -> bool {
        let column = &self.columns[at];
        let life = column.life;
        if n < life.since {
            return !life.keeps_default;
        }
        life.until.is_some_and(|until| n >= until)
            || column.nullable && mix(self.seeds[at] ^ n) % 100 < u64::from(column.nulls)
    }

    fn compute(&self, expression: &Expression, n: u64) -> Option<i32> {
        let (a, b) = expression.operands();
        if self.is_null(a, n) || self.is_null(b, n) {
            return None;
        }
        let (a, b) = (self.number(a, n)? as i32, self.number(b, n)? as i32);
        Some(match expression {
            Expression::Product(..) => a.wrapping_mul(b),
            Expression::Sum(..) | Expression::Written(..) => a.wrapping_add(b),
        })
    }

    /// Whether row `n` satisfies a filter.
    pub(crate) fn passes(&self, filter: &Filter, n: u64) -> bool {
        match filter {
            Filter::IsNotNull(column) => !self.is_null(*column, n),
            Filter::AtLeast(column, least) => {
                !self.is_null(*column, n) && self.number(*column, n).is_some_and(|value| value as i32 >= *least)
            }
            Filter::Written(..) => true,
        }
    }

    fn push_text(&self, ty: SqlType, length: usize, place: u64, out: &mut Vec<u8>) {
        let unit = if ty.is_unicode() { 2 } else { 1 };
        let narrow = || self.words.get_or_init(|| words(self.seed));
        let wide = || self.wide_words.get_or_init(|| narrow().iter().flat_map(|&byte| [byte, 0]).collect());
        let words = if ty.is_unicode() { wide() } else { narrow() };
        let from = out.len();
        let mut left = length * unit;
        let mut at = place as usize % WORDS * unit;
        while left > 0 {
            let piece = &words[at..words.len().min(at + left)];
            out.extend_from_slice(piece);
            left -= piece.len();
            at = 0;
        }
        if let Storage::Fixed(size) = ty.storage() {
            out.truncate(from + usize::from(size));
            while out.len() < from + usize::from(size) {
                out.push(b' ');
                out.extend(&[0][..unit - 1]);
            }
        }
    }
}

fn between(least: u32, most: u32, dice: u64) -> usize {
    (u64::from(least) + dice % (u64::from(most.max(least) - least) + 1)) as usize
}

fn push_bytes(ty: SqlType, length: usize, seed: u64, out: &mut Vec<u8>) {
    let from = out.len();
    if ty.xtype == 241 {
        return push_xml(length / 2, out);
    }
    let mut word = seed;
    while out.len() < from + length {
        word = mix(word);
        out.extend(word.to_le_bytes());
    }
    let size = match ty.storage() {
        Storage::Fixed(size) => usize::from(size),
        _ => length,
    };
    out.resize(from + size, 0);
}

/// Appends binary XML: an element `<a>` with this number of text characters.
fn push_xml(characters: usize, out: &mut Vec<u8>) {
    // The signature, the code page, the declarations of the name "a" and of qualified name 1, an element with this
    // qualified name, and the start of a text.
    out.extend([0xDF, 0xFF, 0x01, 0xB0, 0x04, 0xF0, 0x01, 0x61, 0x00, 0xEF, 0x00, 0x00, 0x01, 0xF8, 0x01, 0x11]);
    let mut rest = characters;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out.extend((0..characters).flat_map(|_| [0x78, 0]));
    out.push(0xF7);
}

/// Lower-case words that are separated by single blanks.
fn words(seed: u64) -> Vec<u8> {
    const SYLLABLES: [&[u8]; 16] = [
        b"ka", b"lo", b"mi", b"ne", b"ru", b"sa", b"to", b"va", b"be", b"di", b"fo", b"gu", b"ha", b"pe", b"ri", b"su",
    ];
    let mut words = Vec::with_capacity(WORDS + 16);
    let mut dice = mix(seed);
    while words.len() < WORDS {
        dice = mix(dice);
        for syllable in 0..2 + dice % 3 {
            words.extend(SYLLABLES[(dice >> (8 + 4 * syllable)) as usize % 16]);
        }
        words.push(b' ');
    }
    words.truncate(WORDS);
    words[WORDS - 1] = b'o';
    words
}
