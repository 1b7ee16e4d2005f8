//! Generates inputs for the entry points from a seed. Each input resembles what its entry point expects.

use source::{MemoryFiles, PageSource};

use crate::mutate::Random;

/// Words from which expressions are composed.
const WORDS: &str = "( ) + - * / % [a] [bb] [ccc] 'x' N'y' 1 0x1F 1.5 and or not = <> , case when then else end is null isnull( \
     like in ( datediff(day, substring( ~ ' [ \u{1F600} between NULL CONVERT([int], CONVERT([decimal](38,20), dateadd(month, \
     round( power( stuff( str( replicate( nullif( coalesce( <= ^ & | len( charindex( 9223372036854775807 1e308";

/// Returns bytes that resemble the input that the entry point `target` expects. `seeds` come from [`seeds`].
/// `backup_bytes` is the size of the backup that the input changes, or 0 if there is no backup.
pub fn input(target: &str, random: &mut Random, seeds: &[Vec<u8>], backup_bytes: usize) -> Vec<u8> {
    match target {
        "bootstrap" | "database" => return changes(random),
        "log_file" | "recovery" => return changes_of_log(random),
        "backup" if backup_bytes > 0 => return changes_of_backup(random, backup_bytes),
        "expression" => {
            let words: Vec<&str> = WORDS.split_whitespace().collect();
            let chosen: Vec<&str> = (0..random.below(30)).filter_map(|_| random.pick(&words)).copied().collect();
            return chosen.join(" ").into_bytes();
        }
        _ => {}
    }
    let mut bytes = match random.pick(seeds) {
        Some(seed) if random.below(4) > 0 => seed.clone(),
        _ => (0..random.below(400)).map(|_| random.number() as u8).collect(),
    };
    for _ in 0..1 + random.below(6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.number() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0xFF, 0x80, 0x7F, 1][random.below(5)],
            3 => bytes.truncate(at),
            _ => {
                let from = random.below(bytes.len());
                let piece: Vec<u8> = bytes[from..].iter().take(16).copied().collect();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Changes to a database. A third of the changes are to the first pages, which lead the reader to all other pages.
fn changes(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(8) {
        let page = match random.below(3) {
            0 => random.below(24),
            _ => random.below(1 << 16),
        } as u16;
        let offset = match random.below(4) {
            0 => random.below(96),
            1 => 8191 - random.below(64),
            _ => random.below(8192),
        } as u16;
        let length = 1 + random.below(12);
        bytes.extend(page.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.push(length as u8);
        let fill = [0, 0xFF, 0x80, 1, 2, 3][random.below(6)];
        let is_noise = random.below(2) == 0;
        bytes.extend((0..length).map(|_| if is_noise { random.number() as u8 } else { fill }));
    }
    bytes
}

/// Changes to a backup: mostly headers at its start and the log at its end.
fn changes_of_backup(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(4) {
        let place = match random.below(3) {
            0 => random.below(8192.min(length)),
            1 => length - 1 - random.below(32_768.min(length)),
            _ => random.below(length),
        };
        let is_righted = random.below(2) << 31;
        bytes.extend((place as u32 | is_righted as u32).to_le_bytes());
        let value = [&[0][..], &[0xFF], &[0xFF; 4], &[1, 0], &[0x80], &[0xFF, 0x7F]][random.below(6)];
        bytes.push(value.len() as u8);
        bytes.extend(value);
    }
    bytes
}

/// Changes to a log. They change headers of VLFs, headers of blocks, and record bytes at small offsets.
fn changes_of_log(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (flags, offset) = match random.below(4) {
            0 => (1 << 15, random.below(48)),
            1 => (1 << 14, random.below(4096)),
            2 => (0, random.below(72)),
            _ => (0, 72 + random.below(4096)),
        };
        bytes.extend((flags | random.below(1 << 14) as u16).to_le_bytes());
        bytes.extend((offset as u16).to_le_bytes());
        let length = 1 + random.below(8);
        bytes.push(length as u8);
        let fill = [0, 0xFF, 0x80, 1, 2, 3][random.below(6)];
        let is_noise = random.below(2) == 0;
        bytes.extend((0..length).map(|_| if is_noise { random.number() as u8 } else { fill }));
    }
    bytes
}

/// A row with three int columns under page compression: an anchor, a dictionary with two entries, and a row with two
/// symbols.
fn compressed_row() -> Vec<u8> {
    let anchor = [0x01, 3, 0x10, 0x03, 0x83, 0xE8];
    let info = [&[0x06, 0, 0, 13, 0, 23, 0][..], &anchor, &[2, 0, 8, 0, 10, 0, 0x01, 0xE9, 0x82, 0xC3]].concat();
    let row = [0x01, 3, 0x3C, 0x0C, 1, 0x00, 0x85, 0];
    [&[3, 0, 0, 0, info.len() as u8, 0][..], &info, &row].concat()
}

/// A compressed block in which all 512 symbols have codes of nine bits.
fn xpress_block() -> Vec<u8> {
    [&[0, 2][..], &[0x99; 256], &[0x5A; 400]].concat()
}

/// Compressed blocks with few and with many literals, with overlapping matches and with long matches.
fn packed_blocks() -> Vec<Vec<u8>> {
    let number = |at: u32| (at.wrapping_mul(0x9E37_79B1) >> 25) as u8;
    let rows = (0..3000u32).map(|at| if at % 40 < 30 { (at % 40) as u8 } else { number(at) });
    let letters = (0..2000u32).map(|at| b'a' + number(at) % 26);
    let runs = (0..4000u32).map(|at| (at / 500) as u8);
    let contents: [Vec<u8>; 3] = [rows.collect(), letters.collect(), runs.collect()];
    let packed = |content: &Vec<u8>| {
        let size = (content.len() as u16).to_le_bytes();
        [&size[..], &lab::backup::compress(content)].concat()
    };
    contents.iter().map(packed).collect()
}

/// A log block with one record: a row inserted into page (1:80).
fn log_block() -> Vec<u8> {
    let mut block = vec![0; 512];
    for (at, value) in [(0, 0x50), (2, 1), (4, 0xFE), (5, 1), (7, 2), (508, 48), (511, 5)] {
        block[at] = value;
    }
    for (at, value) in [(0x10, 9), (0x16, 2), (0x18, 80), (0x1C, 1)] {
        block[48 + at] = value;
    }
    block
}

/// Requests as browsers and other clients send them.
const REQUESTS: [&str; 5] = [
    "GET /database/12 HTTP/1.1\r\nHost: 127.0.0.1:8898\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\n\r\n",
    "POST /acknowledge/7 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 29\r\n\r\ntoken=ab%2Bc&because=is+on+%E8",
    "GET /running/3?a=%2e%2e#/../x HTTP/1.0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "HEAD / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n",
    "\r\nGET http://127.0.0.1/page/1 HTTP/1.1\r\nHost:\r\nX: \u{e9}\r\n\r\nGET /run/1 HTTP/1.1\r\n\r\n",
];

/// Results of CHECKDB: rows with and without names, messages in English and in another language.
const RESULTS: [&str; 4] = [
    "Error,Level,State,MessageText,RepairLevel,Status,DbId,DbFragId,ObjectId,IndexId,PartitionId,AllocUnitId,RidDbId,RidPruId,File,\
     Page,Slot,RefDbId,RefPruId,RefFile,RefPage,RefSlot,Allocation\n-----,-----\n8939,16,98,Table error: Object ID 0, index ID -1, \
     partition ID 0, alloc unit ID -7 (type Unknown), page (1:153). Test (a) failed. Values are 1 and -4.,NULL,0,5,1,7,1,3,4,5,0,1,153,\
     0,5,0,0,0,0,1\n(1 rows affected)\n",
    "\"8928\"\t\"16\"\t\"1\"\t\"Page (1:153)\"\trepair_rebuild\t0\t5\t7\t1\t3\t4\t1\t153\t0\t0\t0\t0\t1\n",
    "DBCC results for 'a'.\nMsg 8951, Level 16, State 1, Line 1\nTable error: table 'T' (ID 7). Data row does not have a matching index \
     row in the index 'i' (ID 2). Possible missing or invalid keys for the index row matching:\nMsg 8955, Level 16, State 1, Line 1\n\
     Data row (1:45:28) identified by (a = 1) with index values 'b = 2'.\nThere are 3 rows in 1 pages for object \"T\".\nService Broker \
     Msg 9675, State 1: Message Types analyzed: 14.\nCHECKDB found 0 allocation errors and 1 consistency errors in database 'a'.\n",
    "Meldung 8905, Ebene 16, Status 1, Zeile 1\nBlock (1:192) Msg 7995, Level 16, State 1, Line 1 x\n8909 16 1\n(1:-5)\n",
];

/// Results of CHECKDB that lead a careless reader to work that grows with the square of their size: headings in one line,
/// short rows below many columns, parentheses that are not closed, different messages, and messages about one page.
pub fn long_results(count: usize) -> [String; 6] {
    let heading = "Msg 8941, Level 16, State 1 ";
    let columns: String = (0..count.min(4096)).map(|column| format!(",c{column}")).collect();
    let owner = "Object ID 7, index ID 0, partition ID 3, alloc unit ID 4 (type In-row data)";
    let test = "Test (sorted [i].offset >= PAGEHEADSIZE) failed";
    let of_page = |page: &dyn Fn(usize) -> usize| {
        let message = |at| {
            format!(
                "{heading}\nTable error: {owner}, page (1:{}). {test}. Slot {at}, offset 0x1 is invalid.\n",
                page(at)
            )
        };
        (0..count).map(message).collect::<String>()
    };
    [
        heading.repeat(count),
        "Nachricht 8941, Ebene 16, Status 1 ".repeat(count),
        format!("Error,Level,State,MessageText{columns}\n{}", "1,\n".repeat(count)),
        format!("{heading}\n{}\n", "(".repeat(count)),
        of_page(&|at| at),
        of_page(&|_| 153),
    ]
}

/// The initial inputs of the entry points: pages and records of a sound database, or the smallest complete input.
pub fn seeds(target: &str, base: Option<&MemoryFiles>) -> Vec<Vec<u8>> {
    match target {
        "compressed" => return vec![compressed_row()],
        "xpress" => return [vec![xpress_block()], packed_blocks()].concat(),
        "log" => return vec![log_block()],
        "part" => return vec![super::part_payload()],
        "request" => return REQUESTS.map(|request| request.as_bytes().to_vec()).into(),
        "dbcc" => {
            let small = RESULTS.map(|results| results.as_bytes().to_vec());
            return small.into_iter().chain(long_results(2000).map(String::into_bytes)).collect();
        }
        "xel" => return [1, 2].map(|seed| lab::events::Story::new(seed, 2, 2, seed == 1).event_file(0x200)).into(),
        _ => {}
    }
    let Some(base) = base else { return Vec::new() };
    let Some(file) = base.files().first() else { return Vec::new() };
    let pages = (0..file.pages).filter_map(|page| base.read_page(format::PageId::new(1, page)));
    match target {
        "page" => pages.map(|page| page.to_vec()).collect(),
        "record" => pages
            .flat_map(|page| {
                let spaces = format::instances::record_spaces(format::Page::new(&page));
                spaces.into_iter().take(3).map(|space| page[space.bytes].to_vec()).collect::<Vec<_>>()
            })
            .filter(|record| record.len() < 2000)
            .collect(),
        _ => Vec::new(),
    }
}
