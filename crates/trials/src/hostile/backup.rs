//! Reads and checks whole backups.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use check::Silent;
use findings::Options;

/// The number of bytes before the data of each change: the offset of the change (4 bytes) and the length of the data (1
/// byte).
const CHANGE_HEADER: usize = 5;
/// A flag in the offset of a change. If the flag is set, the XOR checksum of the changed header is corrected.
const RIGHTED: u32 = 1 << 31;
const SECTOR_BYTES: usize = 512;
/// The number of 16-bit words that the XOR checksum covers in the header of a block. The next constant is the number
/// for the header of a stream. The checksum is the word after the covered words.
const BLOCK_WORDS: usize = 25;
const STREAM_WORDS: usize = 10;

/// Applies the changes in `bytes` to `base`, then reads and checks the backup. Each change is u32 offset, u8 length,
/// and that number of bytes. If `base` is empty, `bytes` is the whole backup.
pub fn backup(base: &[u8], bytes: &[u8]) {
    let content = if base.is_empty() { bytes.to_vec() } else { changed(base, bytes) };
    let Some(file) = Temporary::write(&content) else { return };
    if let Ok(media) = source::backup::media(&file.0) {
        let _ = source::backup::chains(&[media]);
    }
    let Ok(pages) = source::open(std::slice::from_ref(&file.0), &[], false) else { return };
    let database = catalog::load(&*pages);
    let options = Options { max_threads: 1, ..Options::default() };
    let report = check::run(&*pages, &database, &options, &Silent);
    let names = report.names();
    assert!(report.findings.iter().all(|finding| !finding.text(&names).is_empty()));
}

fn changed(base: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut content = base.to_vec();
    let mut rest = bytes;
    while let Some((&[a, b, c, d, length], behind)) = rest.split_first_chunk::<CHANGE_HEADER>() {
        let place = u32::from_le_bytes([a, b, c, d]);
        let at = (place & !RIGHTED) as usize % base.len();
        let (value, next) = behind.split_at(usize::from(length).min(behind.len()));
        rest = next;
        for (place, byte) in content.iter_mut().skip(at).zip(value) {
            *place = *byte;
        }
        if place & RIGHTED != 0 {
            right(&mut content, at / SECTOR_BYTES * SECTOR_BYTES, BLOCK_WORDS);
            for start in (at.saturating_sub(2 * STREAM_WORDS)..=at).filter(|start| start % 4 == 0) {
                right(&mut content, start, STREAM_WORDS);
            }
        }
    }
    content
}

/// Corrects the XOR checksum of the header that starts at `at`, if there is a header.
fn right(content: &mut [u8], at: usize, words: usize) {
    let Some(header) = content.get_mut(at..).and_then(|rest| rest.get_mut(..2 * words + 2)) else { return };
    let (summed, stored) = header.split_at_mut(2 * words);
    if summed.iter().take(4).all(u8::is_ascii_uppercase) {
        let sum = summed.as_chunks::<2>().0.iter().fold(0, |sum, word| sum ^ u16::from_le_bytes(*word));
        stored.copy_from_slice(&sum.to_le_bytes());
    }
}

/// A temporary file that is deleted when the value is dropped. It is needed because backups can be read only from
/// files.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    pub(super) fn write(content: &[u8]) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = Self(std::env::temp_dir().join(format!("mdfsck-hostile-{}-{number}", std::process::id())));
        std::fs::write(&file.0, content).ok().map(|()| file)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
