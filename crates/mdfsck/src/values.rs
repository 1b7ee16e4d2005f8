//! Values that commands take as options: addresses of pages, LSNs, changes at a known time.

use events::{Clock, Moment};
use format::{Lsn, PageId};

/// Parses a page address as people or messages write it: `1:153`, `(1:153)`, `1 153`, or `1,153` as in the arguments of
/// DBCC PAGE. The address of a row, such as `(1:153:2)`, is accepted as the address of the row's page.
pub(crate) fn address(text: &str) -> Result<PageId, String> {
    let wrong = || "expected a page address as FILE:PAGE, for example 1:153".to_owned();
    let bare = text.trim();
    let bare = bare.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(bare);
    let separator = [':', ',', ' '].into_iter().find(|separator| bare.contains(*separator)).ok_or_else(wrong)?;
    let parts = bare.split(separator).map(str::trim).filter(|part| separator == ':' || !part.is_empty());
    let parts: Vec<u32> = parts.map(|part| part.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    let (file, page) = match parts[..] {
        [file, page] => (file, page),
        [file, page, slot] if separator == ':' && slot <= u32::from(u16::MAX) => (file, page),
        _ => return Err(wrong()),
    };
    if page > i32::MAX.cast_unsigned() {
        return Err(format!("the largest page number is {}", i32::MAX));
    }
    Ok(PageId::new(file.try_into().map_err(|_| format!("the largest file ID is {}", u16::MAX))?, page))
}

/// Parses an LSN in one of two forms: in hexadecimal as SQL Server prints it, `00000022:00000a78:00a0`, or as the
/// decimal number that the backup history contains.
pub(crate) fn lsn(text: &str) -> Result<Lsn, String> {
    let parts: Vec<&str> = text.trim_start_matches("0x").split(':').collect();
    let parsed = match parts.as_slice() {
        [vlf, block, slot] => (|| {
            Some(Lsn {
                vlf: u32::from_str_radix(vlf, 16).ok()?,
                block: u32::from_str_radix(block, 16).ok()?,
                slot: u16::from_str_radix(slot, 16).ok()?,
            })
        })(),
        // A numeric(25, 0): the last five digits are the slot, and the ten digits before them are the block.
        [digits] => digits.parse::<u128>().ok().and_then(|number| {
            let (rest, slot) = (number / 100_000, number % 100_000);
            let (vlf, block) = (rest / 10_000_000_000, rest % 10_000_000_000);
            Some(Lsn { vlf: vlf.try_into().ok()?, block: block.try_into().ok()?, slot: slot.try_into().ok()? })
        }),
        _ => None,
    };
    parsed.ok_or_else(|| {
        "expected an LSN as VLF:BLOCK:SLOT in hexadecimal, for example 00000022:00000a78:00a0".to_owned()
    })
}

/// A change that the user made to a database at a known time, from `--change`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Name or ID of the database.
    pub(crate) database: String,
    /// The time of the change.
    pub(crate) at: Moment,
}

/// Parses `DATABASE=TIME`; the time must be in UTC.
pub(crate) fn change(text: &str) -> Result<Change, String> {
    // Splits at the last equals sign, since a database name may contain an equals sign and a time does not.
    let parsed = text.rsplit_once('=').and_then(|(database, at)| Some((database, Moment::parse(at)?)));
    match parsed {
        Some((database, (at, Clock::Utc))) if !database.is_empty() => Ok(Change { database: database.to_owned(), at }),
        _ => Err("expected DATABASE=TIME in UTC, for example Sales=2016-07-09T03:30Z".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_and_messages_write_them() {
        assert_eq!(address("1:153"), Ok(PageId::new(1, 153)));
        assert_eq!(address("(3:0)"), Ok(PageId::new(3, 0)));
        for same in ["1,153", "1, 153", "1 153", " (1:153) ", "(1:153:2)", "1:153:2", "(1,153)"] {
            assert_eq!(address(same), Ok(PageId::new(1, 153)), "{same}");
        }
        for wrong in ["", "1", "1:", ":9", "(1:9", "1:-1", "70000:1", "1:2:3:4", "1,2,3", "1:2:70000", "1::2", "a:b"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        assert!(address("1:2147483647").is_ok() && address("1:2147483648").is_err());
    }

    #[test]
    fn lsns_are_read_as_sql_server_prints_them_and_as_backup_history_keeps_them() {
        let expected = Lsn { vlf: 34, block: 2680, slot: 160 };
        for text in ["00000022:00000a78:00a0", "22:a78:a0", "0x00000022:00000A78:00A0", "34000000268000160"] {
            assert_eq!(lsn(text), Ok(expected), "{text}");
        }
        for text in ["", "1:2", "g:1:1", "1:1:10000", "(34:2680:160)", "99999999999999999999999999999"] {
            assert!(lsn(text).is_err(), "{text}");
        }
    }
}
