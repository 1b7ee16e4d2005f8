//! What of a line is used: an object of a server with a latency and a rate per connection is read in order, by several threads, as a
//! check reads. Prints the rate, what the line could bring, and how many requests were under way.
//!
//! `cargo bench -p mdfsck-remote --bench objects -- [MB per second and connection] [milliseconds] [megabytes]`

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark")]

#[path = "../tests/server/mod.rs"]
mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use remote::{MOST_HELD_BYTES, Objects, Settings};
use server::{Content, Line, Server};
use source::storage::ObjectStorage;

const MB: u64 = 1 << 20;
/// What one machine's network brings.
const NETWORK: f64 = 1.2e9;
/// What one large request asks for at most.
const LARGE: f64 = 8.0 * MB as f64;

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let given = |at: usize, default: u64| words.get(at).copied().unwrap_or(default);
    let (rate, latency, size) = (given(0, 10) * 1_000_000, Duration::from_millis(given(1, 50)), given(2, 2048) * MB);
    for (name, busy, cut) in [("no faults", 0, 0), ("10 % busy, 5 % cut", 10, 5)] {
        let server = Server::start();
        server.set_line(Line { latency, rate, busy, cut });
        server.put("/b/x.mdf", Content::Pattern(size));
        let object = Objects::new(Settings::default()).open(&format!("{}/b/x.mdf", server.url())).unwrap();
        let (next, half) = (AtomicU64::new(0), AtomicU64::new(0));
        let start = Instant::now();
        let read = || {
            let mut buffer = vec![0; MB as usize];
            loop {
                let from = next.fetch_add(MB, Ordering::Relaxed);
                if from >= size {
                    break;
                }
                let mut done = 0;
                while done < buffer.len() {
                    done += object.read_at(&mut buffer[done..], from + done as u64).unwrap();
                }
                assert!(buffer[0] == (from / 4096 % 251) as u8);
                if from >= size / 2 {
                    let _ = half.compare_exchange(
                        0,
                        start.elapsed().as_micros() as u64,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(read)));
        // The first half finds the depth.
        let took = start.elapsed().as_secs_f64() - half.load(Ordering::Relaxed) as f64 / 1e6;
        let found = (size / 2) as f64 / took;
        // All requests under way share the memory for what is read ahead.
        let depth = server.most_under_way() as f64;
        let block = (MOST_HELD_BYTES as f64 * 7.0 / 8.0 / depth).min(LARGE);
        let connection = block / (latency.as_secs_f64() + block / rate as f64);
        let model = (depth * connection).min(NETWORK);
        println!(
            "{name}: {:.0} MB/s of {:.0} ({:.0} %), {} requests under way, {:.0} MB/s each, whole run {:.0} MB/s",
            found / 1e6,
            model / 1e6,
            100.0 * found / model,
            depth,
            connection / 1e6,
            size as f64 / start.elapsed().as_secs_f64() / 1e6
        );
    }
}
