//! The protection of the page against torn or changed bytes.

use format::PageBytes;
use format::protection::{Protection, ProtectionFault, stored_word, verify};

use super::lines::line;

/// Writes the page's protection, and whether the page is intact.
pub(super) fn write(out: &mut String, bytes: &PageBytes) {
    line(out, format_args!("Protection      {}", text(bytes)));
}

/// Numbers of the sectors whose torn bits differ from the pattern in the stored torn-bits word.
pub(super) fn torn_sectors(stored: u32, actual: u32) -> Vec<u32> {
    (1..16).filter(|sector| actual >> (2 * sector) & 3 != stored & 3).collect()
}

fn text(bytes: &PageBytes) -> String {
    match verify(bytes) {
        Ok(Protection::None) => "none: neither checksum nor torn bits".to_owned(),
        Ok(Protection::Checksum) => format!("checksum 0x{:08X}, right", stored_word(bytes)),
        Ok(Protection::TornBits) => {
            let word = stored_word(bytes);
            format!("torn bits 0x{word:08X}, all sectors of one write (pattern {:02b})", word & 3)
        }
        Err(ProtectionFault::Checksum { stored, computed }) => {
            format!("checksum WRONG: stored 0x{stored:08X}, computed 0x{computed:08X}")
        }
        Err(ProtectionFault::Torn { stored, actual }) => {
            let sectors: Vec<String> = torn_sectors(stored, actual).iter().map(u32::to_string).collect();
            format!(
                "TORN: pattern {:02b} is not that of sectors {} (stored 0x{stored:08X}, actual 0x{actual:08X})",
                stored & 3,
                sectors.join(" ")
            )
        }
    }
}
