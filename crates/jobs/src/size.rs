//! Parses and formats sizes such as 512MB and 2GB.

/// The memory grant, without `--memory`, of a command that reads rows, in bytes. The program raises the grant if the fixed
/// part alone is larger.
pub const DEFAULT_BYTES: u64 = 64 << 20;

const UNITS: [(&str, u32); 5] = [("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10), ("B", 0)];

/// Parses a size and returns it in bytes. The text is a whole number with an optional unit: B, KB, MB, GB or TB, where
/// 1 KB has 1024 bytes. The letter B of a unit may be omitted.
pub fn bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" => Some(0),
        unit => UNITS.iter().find(|(name, _)| *name == unit || name.strip_suffix('B') == Some(unit)).map(|unit| unit.1),
    };
    let size = shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift));
    size.ok_or_else(|| "not a size such as 256MB or 2GB".to_owned())
}

/// Formats a size in bytes. Rounds up, so that a user who specifies the printed size as a memory grant grants enough
/// memory.
pub fn text(bytes: u64) -> String {
    // Chooses the largest unit in which the size has at least two digits, or has one digit without rounding.
    let is_plain = |shift: u32| bytes >> shift >= 10 || bytes >> shift > 0 && bytes.is_multiple_of(1 << shift);
    let (name, shift) = UNITS.into_iter().take(4).find(|(_, shift)| is_plain(*shift)).unwrap_or(("KB", 10));
    format!("{} {name}", bytes.div_ceil(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [("512", 512), ("64KB", 65_536), ("2gb", 2 << 30), ("1 TB", 1 << 40), ("7m", 7 << 20)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MB", "-1", "1.5GB", "3 apples", "99999999999999999999", "99999999999TB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_text_says_is_enough() {
        assert_eq!(text(100 << 20), "100 MB");
        assert_eq!(text((100 << 20) + 1), "101 MB");
        assert_eq!(
            [text(5000), text(1 << 20), text(2 << 30), text((2 << 30) + 1)],
            ["5 KB", "1 MB", "2 GB", "2049 MB"]
        );
    }
}
