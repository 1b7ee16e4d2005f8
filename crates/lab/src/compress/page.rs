//! Builds a page of CD records with its CI record, which has the anchor values and the dictionary.

use std::collections::HashMap;

use super::{Stored, push_record};

const ANCHOR: u8 = 0x02;
const DICTIONARY: u8 = 0x04;
/// The maximum number of dictionary entries: the number of an entry is stored in one byte.
const MOST_SYMBOLS: usize = 256;
/// The number of times that a value must occur on a page to get an entry in the dictionary.
const REPEATS: usize = 3;
/// The bytes of a page that are available for records, slots and the CI record.
const SPACE: usize = 8096;

/// The CI record and the records of a page.
pub(crate) struct CompressedPage {
    /// The CI record.
    pub(crate) information: Vec<u8>,
    /// The records of the rows that fit on the page.
    pub(crate) records: Vec<Vec<u8>>,
}

impl CompressedPage {
    /// Compresses the first rows until the page is full. Each row comes with the status byte of its record.
    pub(crate) fn of(rows: &[(u8, Vec<Stored>)]) -> Self {
        let columns = rows.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
        let anchors: Vec<Option<Vec<u8>>> = (0..columns).map(|column| anchor(rows, column)).collect();
        let prefixed: Vec<Vec<Stored>> = rows
            .iter()
            .map(|(_, values)| values.iter().zip(&anchors).map(|(value, anchor)| prefix(value, anchor)).collect())
            .collect();
        let symbols = dictionary(&prefixed);
        let numbers: HashMap<&[u8], u8> = symbols.iter().zip(0..=255).map(|(symbol, n)| (&symbol[..], n)).collect();
        let information = information(&anchors, &symbols);
        let mut used = information.len();
        let mut records = Vec::new();
        for ((status, _), values) in rows.iter().zip(prefixed) {
            let values: Vec<Stored> = values
                .into_iter()
                .map(|value| match &value {
                    Stored::Bytes(bytes) => numbers.get(&bytes[..]).map_or(value.clone(), |&n| Stored::Symbol(n)),
                    _ => value,
                })
                .collect();
            let mut record = Vec::new();
            push_record(*status, &values, &mut record);
            used += record.len() + 2;
            if used > SPACE {
                break;
            }
            records.push(record);
        }
        Self { information, records }
    }
}

fn plain(value: &Stored) -> Option<&[u8]> {
    match value {
        Stored::Bytes(bytes) => Some(bytes),
        Stored::Empty => Some(&[]),
        _ => None,
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Chooses the anchor value of a column. Of up to three candidates, the one that saves the most bytes is chosen; `None`
/// if no candidate saves any. In a column with an anchor, a value is stored as the length of the prefix that it shares
/// with the anchor, followed by its remaining bytes.
fn anchor(rows: &[(u8, Vec<Stored>)], column: usize) -> Option<Vec<u8>> {
    let values: Vec<&Stored> = rows.iter().filter_map(|(_, values)| values.get(column)).collect();
    if values.iter().any(|value| matches!(value, Stored::Pointer(_) | Stored::Bit)) {
        return None;
    }
    let candidate = |at: usize| values.get(at).and_then(|value| plain(value)).filter(|bytes| bytes.len() > 1);
    let candidates = [0, values.len() / 3, values.len() / 2];
    let saved = |anchor: &[u8]| -> i64 {
        let save = |value: &[u8]| {
            let shared = common(anchor, value).min(255);
            if shared == anchor.len() && value.len() == shared { shared as i64 } else { shared as i64 - 1 }
        };
        values.iter().filter_map(|value| plain(value)).map(save).sum::<i64>() - anchor.len() as i64
    };
    let best = candidates.into_iter().filter_map(candidate).max_by_key(|anchor| saved(anchor))?;
    (saved(best) > 0).then(|| best[..best.len().min(255)].to_vec())
}

/// Returns a value as it is stored in a column with an anchor. A value equal to the anchor is stored as an empty value.
/// Another value is stored as the length of its common prefix with the anchor, and its remaining bytes.
fn prefix(value: &Stored, anchor: &Option<Vec<u8>>) -> Stored {
    let (Some(anchor), Some(bytes)) = (anchor, plain(value)) else { return value.clone() };
    if bytes == anchor {
        return Stored::Empty;
    }
    let shared = common(anchor, bytes);
    let mut stored = if shared < 128 { vec![shared as u8] } else { vec![0x80, shared as u8] };
    stored.extend(&bytes[shared..]);
    Stored::Bytes(stored)
}

/// The values that repeat often enough for the dictionary.
fn dictionary(rows: &[Vec<Stored>]) -> Vec<Vec<u8>> {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    let mut symbols: Vec<Vec<u8>> = Vec::new();
    for value in rows.iter().flatten() {
        if let Stored::Bytes(bytes) = value
            && bytes.len() > 2
        {
            let count = counts.entry(bytes).or_default();
            *count += 1;
            if *count == REPEATS && symbols.len() < MOST_SYMBOLS && symbols.iter().map(Vec::len).sum::<usize>() < 2000 {
                symbols.push(bytes.clone());
            }
        }
    }
    symbols
}

/// Builds the CI record: flags, number of changes, offset of the dictionary, length, anchor record, dictionary.
fn information(anchors: &[Option<Vec<u8>>], symbols: &[Vec<u8>]) -> Vec<u8> {
    let values: Vec<Stored> = anchors.iter().map(|anchor| anchor.clone().map_or(Stored::Null, Stored::Bytes)).collect();
    let mut anchor = Vec::new();
    push_record(1, &values, &mut anchor);
    let head = if symbols.is_empty() { 5 } else { 7 };
    let mut out = vec![ANCHOR | if symbols.is_empty() { 0 } else { DICTIONARY }, 0, 0];
    let mut entries = Vec::new();
    if !symbols.is_empty() {
        out.extend(((head + anchor.len()) as u16).to_le_bytes());
        entries.extend((symbols.len() as u16).to_le_bytes());
        let mut end = 2 + 2 * symbols.len();
        for symbol in symbols {
            end += symbol.len();
            entries.extend((end as u16).to_le_bytes());
        }
        entries.extend(symbols.concat());
    }
    out.extend(((head + anchor.len() + entries.len()) as u16).to_le_bytes());
    out.extend(anchor);
    out.extend(entries);
    out
}
