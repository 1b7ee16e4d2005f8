//! Encodes small numbers as Parquet's hybrid of run lengths and packed bits, which is used for levels and dictionary
//! indexes.

/// The minimum number of equal numbers that are written as a run.
const LEAST_RUN: usize = 8;

/// Appends the definition levels of `rows` rows, preceded by their length in bytes. The levels say whether each row has
/// a value. `bits` has one bit per row; `None` means that all rows have a value.
pub(super) fn levels(out: &mut Vec<u8>, bits: Option<&[u8]>, rows: usize) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let present = bits.map_or(rows, |bits| bits.iter().map(|byte| byte.count_ones() as usize).sum());
    match bits {
        Some(bits) if present > 0 && present < rows => {
            varint(out, bits.len() << 1 | 1);
            out.extend_from_slice(bits);
        }
        _ => {
            varint(out, rows << 1);
            out.push(u8::from(present > 0));
        }
    }
    let length = (out.len() - start - 4) as u32;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends numbers of at most `width` bits; `width` is 1 to 16.
pub(super) fn numbers(out: &mut Vec<u8>, numbers: &[u16], width: u32) {
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|number| *number == first).count();
        if run >= LEAST_RUN {
            varint(out, run << 1);
            out.extend_from_slice(first.to_le_bytes().get(..width.div_ceil(8) as usize).unwrap_or_default());
            rest = rest.get(run..).unwrap_or_default();
            continue;
        }
        // Packs numbers in groups of eight, up to the first group of eight equal numbers.
        let is_run =
            |group: &[u16]| group.len() == LEAST_RUN && group.iter().all(|number| group.first() == Some(number));
        let groups = rest.chunks(8).take_while(|group| !is_run(group)).count().max(1);
        let (packed, after) = rest.split_at_checked(8 * groups).unwrap_or((rest, &[]));
        varint(out, groups << 1 | 1);
        pack(out, packed, width);
        rest = after;
    }
}

/// Appends numbers of `width` bits, the first in the lowest bits. Fills up with zeros to a multiple of eight numbers.
fn pack(out: &mut Vec<u8>, numbers: &[u16], width: u32) {
    let end = out.len() + numbers.len().div_ceil(8) * width as usize;
    let (mut waiting, mut bits) = (0_u64, 0);
    for number in numbers {
        waiting |= u64::from(*number) << bits;
        bits += width;
        if bits >= 32 {
            out.extend_from_slice(&(waiting as u32).to_le_bytes());
            waiting >>= 32;
            bits -= 32;
        }
    }
    out.extend_from_slice(&waiting.to_le_bytes());
    out.resize(end, 0);
}

/// Packs boolean values as a page stores them: each input byte, 0 or 1, becomes one bit.
pub(super) fn booleans(out: &mut Vec<u8>, values: &[u8]) {
    let byte = |eight: &[u8]| eight.iter().rev().fold(0, |bits, value| bits << 1 | value & 1);
    out.extend(values.chunks(8).map(byte));
}

fn varint(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
