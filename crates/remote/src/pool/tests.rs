use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::settings::MOST_HELD_BYTES;

const MB: u64 = 1 << 20;

fn pool(most_bytes: u64) -> Pool {
    Pool::new(most_bytes)
}

fn bytes(count: u64) -> Bytes {
    Bytes::from(vec![7; count as usize])
}

/// Requests a part of an object. Returns the requested ranges, and whether they cover the whole part.
fn begin(state: &mut State, object: u32, (from, to): (u64, u64), why: Why) -> (Vec<(u64, u64)>, bool) {
    let mut begun = Vec::new();
    let reached = state.begin(object, (from, to), MB, why, &mut begun);
    (begun, reached >= to)
}

#[test]
fn what_is_there_or_on_its_way_is_not_asked_for_again() {
    let pool = pool(64 * MB);
    let mut state = pool.state();
    assert_eq!(begin(&mut state, 1, (MB, 2 * MB), Why::Needed), (vec![(MB, 2 * MB)], true));
    assert_eq!(begin(&mut state, 1, (0, 3 * MB), Why::Needed), (vec![(0, MB), (2 * MB, 3 * MB)], true));
    assert_eq!(begin(&mut state, 1, (0, 3 * MB), Why::Needed), (vec![], true));
    assert!(matches!(state.find(1, 0, MB), Found::UnderWay(0)));
    assert!(matches!(state.find(2, 0, MB), Found::Nothing));
    state.came(1, 0, Some(bytes(MB)), Instant::now());
    assert!(matches!(state.find(1, MB - 10, 3), Found::Here(part) if part.len() == 3));
    assert!(matches!(state.find(1, MB - 1, MB), Found::Here(rest) if rest.len() == 1));
    assert!(matches!(state.find(1, MB, MB), Found::UnderWay(start) if start == MB));
}

#[test]
fn memory_is_never_more_than_granted() {
    let pool = pool(8 * MB);
    let mut state = pool.state();
    for number in 0..100 {
        let why = [Why::Needed, Why::Ahead, Why::Announced][number as usize % 3];
        let (begun, _) = begin(&mut state, 1, (number * MB, (number + 1) * MB), why);
        assert!(state.held_bytes <= 8 * MB);
        for (start, end) in begun {
            state.came(1, start, Some(bytes(end - start)), Instant::now());
            if number % 2 == 0 {
                assert!(matches!(state.find(1, start, MB), Found::Here(_)));
            }
        }
    }
    assert_eq!(state.held_bytes, state.pieces.values().map(|piece| piece.bytes).sum::<u64>());
    assert!(state.under_way == 0 && state.large_under_way == 0);
}

#[test]
fn a_read_larger_than_the_memory_is_made_in_pieces_that_have_room() {
    let mut state = State::new(4 * MB, Instant::now());
    let read = state.read(1, 100 * MB, (0, 40 * MB));
    let (_, asked) = state.go_on(&read, 0);
    assert!(!asked.is_empty() && asked.iter().all(|(start, end)| end - start <= MB), "{asked:?}");
}

#[test]
fn what_will_be_read_makes_room_only_for_what_a_thread_waits_for_the_furthest_first() {
    let mut state = State::new(8 * MB, Instant::now());
    let read = state.read(1, 100 * MB, (0, MB));
    loop {
        let (_, asked) = state.go_on(&read, 0);
        if asked.is_empty() {
            break;
        }
        asked.iter().for_each(|&(start, end)| state.came(1, start, Some(bytes(end - start)), Instant::now()));
    }
    // Pretend that no bytes of any piece have been handed out.
    state.pieces.values_mut().for_each(|piece| piece.unread = piece.bytes);
    let of_first = |state: &State| state.pieces.keys().filter(|(object, _)| *object == 1).count();
    let (before, furthest) = (of_first(&state), *state.pieces.keys().next_back().unwrap());
    assert!(!begin(&mut state, 2, (0, 4 * MB), Why::Ahead).1 && of_first(&state) == before);
    assert_eq!(begin(&mut state, 2, (10 * MB, 11 * MB), Why::Needed).0.len(), 1);
    assert!(of_first(&state) < before && !state.pieces.contains_key(&furthest) && state.pieces.contains_key(&(1, 0)));
    // Dropped pieces are requested again when there is enough memory.
    for start in [0, 10 * MB] {
        state.came(2, start, Some(bytes(MB)), Instant::now());
        state.find(2, start, MB);
    }
    let again: Vec<u64> = state.go_on(&read, 0).1.iter().map(|(start, _)| *start).collect();
    assert!(again.contains(&furthest.1), "{again:?} {furthest:?}");
}

/// While threads wait, at least one request must be in progress, because only the end of a request wakes the waiting
/// threads.
#[test]
fn what_is_asked_for_ahead_never_takes_the_room_of_what_is_about_to_be_read() {
    let mut state = State::new(4 * MB, Instant::now());
    for (object, length) in [(1, 3 * MB), (2, MB - 64 * 1024)] {
        for (start, end) in state.announced(object, 100 * MB, (0, length)) {
            state.came(object, start, Some(bytes(end - start)), Instant::now());
        }
    }
    state.keep(3, bytes(64 * 1024));
    assert_eq!((state.held_bytes, state.under_way), (4 * MB, 0));
    let read = state.read(3, 100 * MB, (0, MB));
    let (found, _) = state.go_on(&read, 0);
    assert!(matches!(found, Found::Here(part) if part.len() == 64 * 1024));
}

#[test]
fn what_is_done_goes_before_what_was_read_in_part() {
    let mut state = State::new(4 * MB, Instant::now());
    begin(&mut state, 1, (0, 4 * MB), Why::Needed);
    (0..4).for_each(|at| state.came(1, at * MB, Some(bytes(MB)), Instant::now()));
    // The second half of the first piece has not been read, because one thread is behind the others.
    for (at, most) in [(0, MB / 2), (MB, MB), (2 * MB, MB), (3 * MB, MB)] {
        state.clock += 1;
        assert!(matches!(state.find(1, at, most), Found::Here(_)));
    }
    begin(&mut state, 1, (4 * MB, 6 * MB), Why::Needed);
    assert_eq!(state.pieces.keys().map(|(_, start)| start / MB).collect::<Vec<_>>(), [0, 3, 4, 5]);
}

#[test]
fn large_pieces_are_under_way_up_to_the_depth_and_further_ones_as_some_come() {
    let mut state = State::new(MOST_HELD_BYTES, Instant::now());
    let (begun, is_all) = begin(&mut state, 1, (0, 16 * MB), Why::Ahead);
    assert!(begun.len() == state.pace.depth() && !is_all);
    // The first piece is late; three others have arrived.
    (1..4).for_each(|number| state.came(1, number * MB, Some(bytes(MB)), Instant::now()));
    assert_eq!(begin(&mut state, 1, (8 * MB, 16 * MB), Why::Ahead).0.len(), 3);
    assert_eq!(begin(&mut state, 1, (11 * MB, 12 * MB), Why::Needed).0.len(), 1, "a thread waits for it");
    let small = state.announced(2, 1000 * MB, (100 * MB, SMALL_BYTES));
    assert_eq!(small, [(100 * MB, 100 * MB + SMALL_BYTES)], "pages are counted apart");
}

#[test]
fn a_piece_that_cannot_be_had_leaves_no_trace() {
    let pool = pool(8 * MB);
    begin(&mut pool.state(), 1, (0, MB), Why::Needed);
    pool.came(1, 0, None);
    let mut state = pool.state();
    assert!(state.held_bytes == 0 && state.large_under_way == 0 && matches!(state.find(1, 0, MB), Found::Nothing));
}

#[test]
fn many_streams_share_the_memory() {
    let mut state = State::new(MOST_HELD_BYTES, Instant::now());
    let mut share = |object| {
        let read = state.read(object, 1000 * MB, (0, MB));
        state.ended(&read);
        state.share()
    };
    assert_eq!(share(1), (LARGE_BYTES, 13 * LARGE_BYTES));
    let shares: Vec<(u64, u64)> = (2..66).map(share).collect();
    let &(large, window) = shares.last().unwrap();
    assert!(65 * (large + window) <= MOST_HELD_BYTES && large >= MB && window >= large);
}

/// A store in virtual time. Its requests fail in a pseudo-random order that is the same in every run.
struct Line {
    latency: f64,
    /// Bytes per second of each connection.
    rate: f64,
    /// Number of requests in 100 that fail.
    busy: u64,
    cut: u64,
    chance: u64,
}

impl Line {
    fn chance(&mut self, most: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % most
    }

    /// Seconds until all bytes of a request have arrived. They include repeated attempts, with the same pauses as in
    /// `stores`.
    fn seconds(&mut self, bytes: u64) -> f64 {
        let (mut seconds, mut left, mut pause) = (0.0, bytes as f64, 0.01);
        loop {
            seconds += self.latency;
            let is_busy = self.chance(100) < self.busy;
            let is_cut = self.chance(100) < self.cut;
            if !is_busy && !is_cut {
                return seconds + left / self.rate;
            }
            if !is_busy {
                seconds += left / 2.0 / self.rate;
                left /= 2.0;
            }
            seconds += pause;
            pause = 0.01 + (pause * 4.0 - 0.01) * self.chance(1000) as f64 / 1000.0;
        }
    }
}

/// Threads that read several objects from a store in virtual time. They read the next chunk of each object in turn.
/// Their own work takes no time.
struct Readers {
    state: State,
    line: Line,
    /// Size of each object in bytes.
    size: u64,
    objects: u64,
    chunk: u64,
    /// Number of chunks whose read has begun.
    begun: u64,
    threads: Vec<Option<Reading>>,
    /// The requests in progress. The key consists of the time of arrival in nanoseconds, the object, and the start
    /// offset of the piece. The value is the end offset of the piece.
    coming: BTreeMap<(u64, u32, u64), u64>,
    start: Instant,
    now: u64,
    asked_bytes: u64,
}

/// The read of a thread: its offset, and the piece for which the thread waits.
struct Reading {
    object: u32,
    read: Read,
    at: u64,
    waits_for: Option<u64>,
}

impl Readers {
    fn new(threads: usize, (objects, size): (u64, u64), chunk: u64, (busy, cut): (u64, u64)) -> Self {
        let start = Instant::now();
        Self {
            state: State::new(MOST_HELD_BYTES, start),
            line: Line { latency: 0.05, rate: 10e6, busy, cut, chance: threads as u64 },
            size,
            objects,
            chunk,
            begun: 0,
            threads: (0..threads).map(|_| None).collect(),
            coming: BTreeMap::new(),
            start,
            now: 0,
            asked_bytes: 0,
        }
    }

    /// Begins the read of the next chunk.
    fn begin(&mut self) -> Option<Reading> {
        let (object, from) = ((self.begun % self.objects) as u32 + 1, self.begun / self.objects * self.chunk);
        if from == self.size {
            return None;
        }
        self.begun += 1;
        let read = self.state.read(object, self.size, (from, from + self.chunk));
        Some(Reading { object, read, at: from, waits_for: None })
    }

    /// Lets a thread read until it must wait or all chunks are read.
    fn go_on(&mut self, thread: usize) {
        while let Some(mut reading) = self.threads[thread].take().or_else(|| self.begin()) {
            let object = reading.object;
            if let Some(start) = reading.waits_for.take() {
                self.state.pieces.get_mut(&(object, start)).unwrap().waiting -= 1;
            }
            let (found, asked) = self.state.go_on(&reading.read, reading.at);
            for (from, to) in asked {
                let comes = self.now + (self.line.seconds(to - from) * 1e9) as u64;
                self.coming.insert((comes, object, from), to);
                self.asked_bytes += to - from;
            }
            assert!(self.state.held_bytes <= self.state.most_bytes);
            match found {
                Found::Here(part) => {
                    reading.at += part.len() as u64;
                    if reading.at == reading.read.end {
                        self.state.ended(&reading.read);
                        continue;
                    }
                    self.threads[thread] = Some(reading);
                    continue;
                }
                Found::UnderWay(start) => {
                    self.state.pieces.get_mut(&(object, start)).unwrap().waiting += 1;
                    reading.waits_for = Some(start);
                }
                Found::Nothing => {}
            }
            self.state.pace.waits();
            self.threads[thread] = Some(reading);
            return;
        }
    }

    /// Reads all objects. Returns the bytes per second in the second half, and the greatest depth of the pace.
    fn read_all(&mut self) -> (f64, usize) {
        let chunks = self.size / self.chunk * self.objects;
        let (block, mut half, mut depth) = (bytes(LARGE_BYTES), 0, 0);
        loop {
            (0..self.threads.len()).for_each(|thread| self.go_on(thread));
            if half == 0 && self.begun >= chunks / 2 {
                half = self.now;
            }
            depth = depth.max(self.state.pace.depth());
            let Some(((now, object, from), to)) = self.coming.pop_first() else { break };
            self.now = now;
            let at = self.start + Duration::from_nanos(now);
            self.state.came(object, from, Some(block.slice(..(to - from) as usize)), at);
        }
        assert!(self.threads.iter().all(Option::is_none) && self.begun == chunks);
        ((self.size * self.objects / 2) as f64 / ((self.now - half) as f64 / 1e9), depth)
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn with_failing_requests_the_line_stays_in_use_and_nothing_is_asked_for_twice() {
    const SIZE: u64 = 16384 * MB;
    for (busy, cut, least) in [(0, 0, 0.93), (5, 2, 0.88), (10, 5, 0.85), (20, 10, 0.6)] {
        for threads in [1, 4, 16] {
            let mut readers = Readers::new(threads, (1, SIZE), MB, (busy, cut));
            let (rate, depth) = readers.read_all();
            assert_eq!(readers.asked_bytes, SIZE, "{busy} % busy, {threads} threads");
            // The model: the same number of connections, which are always busy and share the read-ahead memory.
            let block = (MOST_HELD_BYTES as f64 * 7.0 / 8.0 / depth as f64).min(LARGE_BYTES as f64);
            let model = depth as f64 * block / (readers.line.latency + block / readers.line.rate);
            let used = rate / model;
            assert!(used >= least, "{busy} % busy, {threads} threads: {used:.2} of {depth} connections");
        }
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn the_stripes_of_a_backup_take_no_room_from_each_other() {
    for (objects, chunk) in [(8, SMALL_BYTES), (64, SMALL_BYTES), (64, MB)] {
        for faults in [(0, 0), (10, 5)] {
            let size = 2048 * MB / objects;
            let mut readers = Readers::new(4, (objects, size), chunk, faults);
            let (rate, _) = readers.read_all();
            // Until the last streams are recognized, the first streams use all the memory, so some bytes are requested
            // again.
            let again = readers.asked_bytes - size * objects;
            assert!(again < size * objects / 8, "{objects} {chunk} {faults:?}: {again} bytes again");
            assert!(rate > 100e6, "{objects} {chunk} {faults:?}: {rate} bytes per second");
        }
    }
}
