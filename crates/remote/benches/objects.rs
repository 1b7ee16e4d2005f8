//! Measures how much of a network line is used. Several threads read an object in order, as a check does, from a server
//! with a given latency and a given rate per connection. The bench prints the rate, the rate that the line allows, the
//! greatest number of concurrent requests, and the share of bytes sent more than once.
//!
//! `cargo bench -p mdfsck-remote --bench objects -- [MB per second and connection] [milliseconds] [megabytes] [failing
//! requests in 100]...`
//!
//! Of 100 requests, the given number fail with status 503. Half that number of answers end in the middle of their body.
//!
//! The model is a line without faults. It has as many connections as the server saw at the same time, and each
//! connection is always busy. The size of a request is 8 MB or an equal share of the read-ahead memory (7/8 of 256 MB),
//! whichever is less. Each request costs the latency, and then the time for its bytes at the rate of a connection. The
//! network delivers at most 1.2 GB per second. The model leaves out the cost of failed requests, because reading ahead
//! must hide it. That cost is the latency again, and the pause before the next attempt (10 ms at first, then up to four
//! times the previous pause). The value `at 32` is the measured rate as a percentage of the rate in a model with 32
//! connections.

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
/// The most bytes per second that the network of one machine delivers.
const NETWORK: f64 = 1.2e9;
/// Number of bytes in the largest request.
const LARGE: f64 = 8.0 * MB as f64;
/// The default numbers of failing requests in 100.
const FAILING: [u64; 4] = [0, 5, 10, 20];

/// Bytes per second that this number of connections delivers in the model.
fn modelled(connections: f64, line: Line) -> f64 {
    let block = (MOST_HELD_BYTES as f64 * 7.0 / 8.0 / connections).min(LARGE);
    let connection = block / (line.latency.as_secs_f64() + block / line.rate as f64);
    (connections * connection).min(NETWORK)
}

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let given = |at: usize, default: u64| words.get(at).copied().unwrap_or(default);
    let (rate, latency, size) = (given(0, 10) * 1_000_000, Duration::from_millis(given(1, 50)), given(2, 2048) * MB);
    for &busy in words.get(3..).filter(|failing| !failing.is_empty()).unwrap_or(&FAILING) {
        let server = Server::start();
        let line = Line { latency, rate, busy, cut: busy / 2 };
        server.set_line(line);
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
                    let now = start.elapsed().as_micros() as u64;
                    let _ = half.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(read)));
        // The number of concurrent requests settles during the first half, so only the second half is measured.
        let took = start.elapsed().as_secs_f64() - half.load(Ordering::Relaxed) as f64 / 1e6;
        let found = (size / 2) as f64 / took;
        let connections = server.most_under_way() as f64;
        let (model, at_32) = (modelled(connections, line), modelled(32.0, line));
        println!(
            "{busy} % busy, {} % cut: {:.0} MB/s of {:.0} ({:.0} %; at 32: {:.0} %), {connections} requests under way, {:.1} % sent again, \
             whole run {:.0} MB/s",
            busy / 2,
            found / 1e6,
            model / 1e6,
            100.0 * found / model,
            100.0 * found / at_32,
            100.0 * (server.sent() as f64 / size as f64 - 1.0),
            size as f64 / start.elapsed().as_secs_f64() / 1e6
        );
    }
}
