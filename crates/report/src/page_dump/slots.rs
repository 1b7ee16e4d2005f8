//! The slot array.

use std::fmt::Write;

use format::bytes::u16_at;
use format::fields::Structure;
use format::slots::MAX_SLOTS;

use super::lines::line;
use super::parsed::Parsed;

/// The record offset of each slot, according to the slot array.
pub(super) fn offsets(parsed: &Parsed) -> impl Iterator<Item = Option<u16>> {
    parsed.fields_of(Structure::SlotArray).map(|found| u16_at(parsed.slice(&found.bytes), 0))
}

/// Writes all slots, several per line.
pub(super) fn write(out: &mut String, parsed: &Parsed) {
    const PER_LINE: usize = 8;
    let count = usize::from(parsed.view().header().slot_count.get());
    let odd = if count > MAX_SLOTS { ", more than a page can have" } else { "" };
    line(out, format_args!("\nSlot array, {count} slot{}{odd}", if count == 1 { "" } else { "s" }));
    let slots: Vec<_> = offsets(parsed).collect();
    for (number, chunk) in slots.chunks(PER_LINE).enumerate() {
        let _ = write!(out, "  {:>5}:", number * PER_LINE);
        for offset in chunk {
            match offset.unwrap_or_default() {
                0 => out.push_str("  empty "),
                offset => {
                    let _ = write!(out, "  0x{offset:04X}");
                }
            }
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
}
