//! Reads the lines about checkpoints in error logs (docs/format/events.md#error-logs).
//!
//! SQL Server reports a slow checkpoint in three or four lines of the same process: the first line has the amount
//! written, and the other lines have the rates. An export of the log lists the newest line first, so it contains the
//! first line of a report after the other lines.

use std::io::{self, Read};

use crate::lines::Lines;
use crate::moment::offset_minutes;
use crate::{Clock, Moment};

/// Maximum number of lines about checkpoints to keep, about 100 bytes each.
const MAX_LINES: usize = 1_000_000;

/// A slow checkpoint, as reported by SQL Server.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Flush {
    /// When the line was written, at the end of the checkpoint's writes.
    pub at: Option<Moment>,
    /// ID of the database; SQL Server 2008 does not report it.
    pub database_id: Option<u32>,
    /// Number of buffers written.
    pub bufs: u64,
    /// Number of writes; each write has one or more buffers.
    pub writes: Option<u64>,
    /// Duration of the writes, in milliseconds.
    pub ms: u64,
    /// Number of buffers that became dirty during the checkpoint and were not written.
    pub avoided: Option<u64>,
    /// Writes per second.
    pub writes_per_second: Option<f64>,
    /// Megabytes per second.
    pub mb_per_second: Option<f64>,
    /// The value that SQL Server reports as "I/O saturation", a measure of the load of the disks.
    pub io_saturation: Option<u64>,
    /// Number of context switches.
    pub context_switches: Option<u64>,
    /// Maximum number of outstanding writes, as set at the end of the checkpoint.
    pub last_target_outstanding: Option<u64>,
    /// Average latency of a write, in milliseconds.
    pub avg_write_latency_ms: Option<u64>,
}

/// The start or end of a checkpoint, as logged by trace flag 3502.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced {
    /// Time of the line.
    pub at: Moment,
    /// ID of the database.
    pub database_id: u32,
    /// Whether the line reports the end of the checkpoint.
    pub is_end: bool,
}

/// The lines about checkpoints in an error log. All times are measured by [`ErrorLog::clock`].
#[derive(Clone, PartialEq, Debug)]
pub struct ErrorLog {
    /// UTC if the error log states the offset of the server's clock from UTC, otherwise local time.
    pub clock: Clock,
    /// Slow checkpoints, ordered by time.
    pub flushes: Vec<Flush>,
    /// Lines about the start or the end of checkpoints, ordered by time.
    pub traced: Vec<Traced>,
    /// Number of lines about checkpoints that have an unexpected form, or that lack the first line of their report.
    pub unclear: u64,
}

/// A line of an error log: time, process, text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// When the line was written, by the server's clock.
    pub at: Moment,
    /// The process that wrote the line, such as `spid12s` or `Server`.
    pub source: &'a str,
    /// The text after time and process.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Parses a line; `None` if the line does not start with a time and a process. Blanks, tabs, commas or quotes
    /// separate the columns.
    pub fn read(line: &'a str) -> Option<Self> {
        let is_between = |c: char| matches!(c, ' ' | '\t' | ',' | ';' | '"' | '|' | '\u{FEFF}');
        let (at, rest) = Moment::parse_start(line.trim_start_matches(is_between))?;
        let rest = rest.strip_prefix(is_between)?.trim_start_matches(is_between);
        let (source, text) = rest.split_once(is_between)?;
        let text = text.trim_matches(|c: char| is_between(c) || c == '\r');
        (!source.is_empty()).then_some(Self { at, source, text })
    }
}

/// The parsed text of a line about checkpoints.
#[derive(Clone, PartialEq, Debug)]
enum Said {
    Head(Flush),
    WritesPerSecond(f64),
    Throughput {
        mb_per_second: f64,
        io_saturation: u64,
        context_switches: Option<u64>,
    },
    LastTarget {
        outstanding: u64,
        latency_ms: Option<u64>,
    },
    Traced {
        database_id: u32,
        is_end: bool,
    },
    Offset(i64),
    /// The line starts like one of the other kinds, but its remaining text has an unexpected form.
    Unclear,
}

struct Kept {
    at: Moment,
    source: Box<str>,
    said: Said,
}

/// Reads an error log, or an export of its lines.
///
/// # Errors
/// Errors of `input`, and an error if there are more lines about checkpoints than the limit.
pub fn read(input: impl Read) -> io::Result<ErrorLog> {
    let mut lines = Lines::new(input);
    let mut kept = Vec::new();
    // Number of lines with a later time than the previous line, minus the number of lines with an earlier time. The
    // result is negative for exports.
    let (mut rising, mut last) = (0i64, None);
    while let Some(text) = lines.next_line()? {
        let Some(line) = Line::read(&text) else { continue };
        rising += last.map_or(0, |last| line.at.cmp(&last) as i64);
        last = Some(line.at);
        if let Some(said) = said(line.text) {
            if kept.len() == MAX_LINES {
                return Err(io::Error::other(format!(
                    "it has more than {MAX_LINES} lines about checkpoints; split the file"
                )));
            }
            kept.push(Kept { at: line.at, source: line.source.into(), said });
        }
    }
    if rising < 0 {
        kept.reverse();
    }
    Ok(joined(kept))
}

/// Combines the lines about each slow checkpoint: the first line of the report, and the later lines that the same
/// process wrote.
fn joined(lines: Vec<Kept>) -> ErrorLog {
    let offset = lines.iter().find_map(|line| match line.said {
        Said::Offset(minutes) => Some(minutes),
        _ => None,
    });
    let clock = if offset.is_some() { Clock::Utc } else { Clock::Local };
    let mut log = ErrorLog { clock, flushes: Vec::new(), traced: Vec::new(), unclear: 0 };
    let mut offset = offset.unwrap_or(0);
    let mut open: Option<(Box<str>, Flush)> = None;
    for line in lines {
        let at = line.at.plus_minutes(-offset);
        let flush = open.as_mut().filter(|(source, _)| *source == line.source).map(|(_, flush)| flush);
        match (line.said, flush) {
            (Said::Offset(minutes), _) => offset = minutes,
            (Said::Traced { database_id, is_end }, _) => log.traced.push(Traced { at, database_id, is_end }),
            (Said::Head(flush), _) => {
                let before = open.replace((line.source, Flush { at: Some(at), ..flush }));
                log.flushes.extend(before.map(|(_, flush)| flush));
            }
            (Said::WritesPerSecond(rate), Some(flush)) => flush.writes_per_second = Some(rate),
            (Said::Throughput { mb_per_second, io_saturation, context_switches }, Some(flush)) => {
                flush.mb_per_second = Some(mb_per_second);
                flush.io_saturation = Some(io_saturation);
                flush.context_switches = context_switches;
            }
            (Said::LastTarget { outstanding, latency_ms }, Some(flush)) => {
                flush.last_target_outstanding = Some(outstanding);
                flush.avg_write_latency_ms = latency_ms;
            }
            _ => log.unclear += 1,
        }
    }
    log.flushes.extend(open.map(|(_, flush)| flush));
    log
}

/// Parses the text of a line about checkpoints; `None` for other lines.
fn said(text: &str) -> Option<Said> {
    let mut words = Words { rest: text };
    if words.skip("FlushCache: cleaned up ") {
        return Some(flush_cache(words).map_or(Said::Unclear, Said::Head));
    }
    if words.skip("DirtyPageMgr::ForceCatchupOrFlushCache: cleaned up ") {
        return Some(dirty_pages(words).map_or(Said::Unclear, Said::Head));
    }
    if words.skip("average writes per second:") {
        return Some(words.decimal().map_or(Said::Unclear, Said::WritesPerSecond));
    }
    if words.skip("average throughput:") {
        return Some(throughput(words).unwrap_or(Said::Unclear));
    }
    if words.skip("last target outstanding:") {
        let outstanding = words.number();
        let latency_ms = if words.skip(", avgWriteLatency") { words.number() } else { None };
        return Some(outstanding.map_or(Said::Unclear, |outstanding| Said::LastTarget { outstanding, latency_ms }));
    }
    if words.skip("Ckpt dbid ") {
        let database_id = words.number().and_then(|id| u32::try_from(id).ok());
        let is_end = match words.rest.trim_start() {
            rest if rest.starts_with("started") => false,
            rest if rest.starts_with("complete") => true,
            // Ignores lines about the phases between the start and the end of a checkpoint.
            _ => return None,
        };
        return Some(database_id.map_or(Said::Unclear, |database_id| Said::Traced { database_id, is_end }));
    }
    if words.skip("UTC adjustment:") {
        return offset_minutes(words.rest.trim()).map(Said::Offset);
    }
    None
}

fn flush_cache(mut words: Words<'_>) -> Option<Flush> {
    let bufs = words.number()?;
    let writes = words.skip(" bufs with ").then(|| words.number())??;
    let ms = words.skip(" writes in ").then(|| words.number())??;
    let avoided = words.skip(" ms (avoided ").then(|| words.number())??;
    let mut flush = Flush { bufs, writes: Some(writes), ms, avoided: Some(avoided), ..Flush::default() };
    if words.skip(" new dirty bufs) for db ") {
        flush.database_id = Some(u32::try_from(words.number()?).ok()?);
    }
    Some(flush)
}

fn dirty_pages(mut words: Words<'_>) -> Option<Flush> {
    let bufs = words.number()?;
    let ms = words.skip(" dirty pages in ").then(|| words.number())??;
    let database_id = words.skip(" ms for db ").then(|| words.number())??;
    Some(Flush { bufs, ms, database_id: Some(u32::try_from(database_id).ok()?), ..Flush::default() })
}

fn throughput(mut words: Words<'_>) -> Option<Said> {
    let mb_per_second = words.decimal()?;
    let io_saturation = words.skip(" MB/sec, I/O saturation:").then(|| words.number())??;
    let context_switches = if words.skip(", context switches") { words.number() } else { None };
    Some(Said::Throughput { mb_per_second, io_saturation, context_switches })
}

/// A parser that reads a text from front to back.
struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    /// Skips `text` if the input continues with this text. Returns whether the text was skipped.
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &str {
        let text = self.rest.trim_start();
        let length = text.bytes().take_while(|byte| is_part(*byte)).count();
        let (part, rest) = text.split_at_checked(length).unwrap_or_default();
        self.rest = rest;
        part
    }

    fn number(&mut self) -> Option<u64> {
        self.take(|byte| byte.is_ascii_digit()).parse().ok()
    }

    fn decimal(&mut self) -> Option<f64> {
        self.take(|byte| byte.is_ascii_digit() || byte == b'.').parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2016-07-09 03:30:10.10 Server      UTC adjustment: -8:00
2016-07-09 03:30:14.02 spid12s     FlushCache: cleaned up 35433 bufs with 22738 writes in 168539 ms (avoided 21451 new dirty bufs) for db 6:0
2016-07-09 03:30:14.02 spid12s                 average writes per second:  17.70 writes/sec
2016-07-09 03:30:14.02 spid12s                 average throughput:  24.49 MB/sec, I/O saturation: 68365, context switches 80348
2016-07-09 03:30:14.02 spid12s                 last target outstanding: 1560, avgWriteLatency 15
2016-07-09 03:31:00.00 spid13s     DirtyPageMgr::ForceCatchupOrFlushCache: cleaned up 166 dirty pages in 4 ms for db 19
2016-07-09 03:32:00.00 spid14s     FlushCache: cleaned up 6 bufs with 6 writes in 1 ms (avoided 0 new dirty bufs)
2016-07-09 03:32:00.00 spid14s                 average throughput:  46.88 MB/sec, I/O saturation: 5
2016-07-09 03:32:00.00 spid14s                 last target outstanding: 2
2016-07-09 03:33:00.00 spid9s      Ckpt dbid 1 started (8)
2016-07-09 03:33:00.10 spid9s      Ckpt dbid 1 phase 1 ended (8)
2016-07-09 03:33:00.20 spid9s      Ckpt dbid 1 complete
";

    fn expected() -> ErrorLog {
        let at = |text: &str| Moment::parse(text).unwrap().0;
        let slow = Flush {
            at: Some(at("2016-07-09T11:30:14.02Z")),
            database_id: Some(6),
            bufs: 35433,
            writes: Some(22738),
            ms: 168_539,
            avoided: Some(21451),
            writes_per_second: Some(17.7),
            mb_per_second: Some(24.49),
            io_saturation: Some(68365),
            context_switches: Some(80348),
            last_target_outstanding: Some(1560),
            avg_write_latency_ms: Some(15),
        };
        let indirect =
            Flush { at: Some(at("2016-07-09T11:31Z")), database_id: Some(19), bufs: 166, ms: 4, ..Flush::default() };
        let old = Flush {
            at: Some(at("2016-07-09T11:32Z")),
            bufs: 6,
            writes: Some(6),
            ms: 1,
            avoided: Some(0),
            mb_per_second: Some(46.88),
            io_saturation: Some(5),
            last_target_outstanding: Some(2),
            ..Flush::default()
        };
        let traced = |text, is_end| Traced { at: at(text), database_id: 1, is_end };
        ErrorLog {
            clock: Clock::Utc,
            flushes: vec![slow, indirect, old],
            traced: vec![traced("2016-07-09T11:33Z", false), traced("2016-07-09T11:33:00.2Z", true)],
            unclear: 0,
        }
    }

    #[test]
    fn slow_checkpoints_are_read_in_the_words_of_each_release() {
        assert_eq!(read(LOG.as_bytes()).unwrap(), expected());
    }

    #[test]
    fn the_order_the_encoding_and_the_columns_of_an_export_do_not_matter() {
        let newest_first = LOG.lines().rev().map(|line| format!("{line}\r\n")).collect::<String>();
        assert_eq!(read(newest_first.as_bytes()).unwrap(), expected());
        let wide: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&[&[0xFF, 0xFE], &wide[..]].concat()[..]).unwrap(), expected());
        let columns = |line: &str| {
            let (time, rest) = line.split_at(22);
            let (source, text) = rest.trim().split_once(' ').unwrap();
            format!("{time},{source},\"{}\"\n", text.trim())
        };
        let csv = "LogDate,ProcessInfo,Text\n".to_owned() + &LOG.lines().map(columns).collect::<String>();
        assert_eq!(read(csv.as_bytes()).unwrap(), expected());
    }

    #[test]
    fn a_log_that_does_not_name_its_time_zone_has_local_times() {
        let without = LOG.lines().skip(1).collect::<Vec<&str>>().join("\n");
        let log = read(without.as_bytes()).unwrap();
        assert_eq!(
            (log.clock, log.flushes[0].at),
            (Clock::Local, Moment::parse("2016-07-09T03:30:14.02Z").map(|at| at.0))
        );
    }

    #[test]
    fn lines_without_their_first_are_counted() {
        let tail = LOG.lines().skip(3).take(2).collect::<Vec<&str>>().join("\n");
        let log = read(tail.as_bytes()).unwrap();
        assert_eq!((log.flushes.len(), log.unclear), (0, 2));
        assert_eq!(read(&b"2016-07-09 03:30:14.02 spid1s FlushCache: cleaned up x bufs"[..]).unwrap().unclear, 1);
    }

    #[test]
    fn endless_lines_do_no_harm() {
        let long = "2016-07-09 03:30:14.02 spid12s ".to_owned() + &"x".repeat(1 << 20) + "\n" + LOG;
        assert_eq!(read(long.as_bytes()).unwrap(), expected());
        assert_eq!(read(&[0xFFu8; 1000][..]).unwrap().flushes, []);
    }
}
