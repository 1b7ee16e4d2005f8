//! The least work that a check could do, written for one schema and one machine: what mdfsck is measured beside.
//!
//! `limits gen FILE GB` writes pages; `io`, `cold`, `ck`, `rows` and `cells FILE` read them; `mem` and `nc` need none. `rows FILE x`
//! leaves out what copies.

mod cksum;
mod page;
mod reading;
mod rows;
use cksum::Ck;
use page::*;
use reading::{map_all, pread_all, uring_all, Buf, Map};
use rows::*;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Instant;

fn med(mut v: Vec<f64>) -> (f64, f64, f64) {
    v.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (v[v.len() / 2], v[0], v[v.len() - 1])
}
/// Runs f `n` times, prints median/worst/best GB/s (GB = 1e9) and, with rows, ns per row.
fn bench(name: &str, bytes: u64, rows: u64, n: usize, mut f: impl FnMut()) {
    let mut t = vec![];
    for _ in 0..n {
        let s = Instant::now();
        f();
        t.push(s.elapsed().as_secs_f64());
    }
    let (m, lo, hi) = med(t);
    let g = |s: f64| bytes as f64 / s / 1e9;
    print!("{name:<46} {:>7.2} GB/s  (worst {:>6.2}, best {:>6.2}, n={n})", g(m), g(hi), g(lo));
    if rows > 0 {
        print!("  {:>6.2} ns/row  {:>6.1} Mrow/s", m * 1e9 / rows as f64, rows as f64 / m / 1e6);
    }
    println!();
}

fn xor_lines(b: &[u8]) -> u64 {
    // touches every byte: the memory-bandwidth probe
    let w = unsafe { std::slice::from_raw_parts(b.as_ptr() as *const u64, b.len() / 8) };
    let mut a = [0u64; 32];
    for c in w.chunks_exact(32) {
        for i in 0..32 {
            a[i] ^= c[i];
        }
    }
    a.iter().fold(0, |m, v| m ^ v)
}
fn touch(b: &[u8], step: usize) -> u64 {
    let mut s = 0u64;
    let mut i = 0;
    while i < b.len() {
        s = s.wrapping_add(b[i] as u64);
        i += step;
    }
    s
}
fn bb<T>(x: T) {
    std::hint::black_box(x);
}
fn pages(b: &[u8]) -> &[[u8; PAGE]] {
    b.as_chunks::<PAGE>().0
}
fn ck_pages(k: Ck, b: &[u8]) -> u64 {
    let mut bad = 0;
    for p in pages(b) {
        let st = u32::from_le_bytes(p[60..64].try_into().unwrap());
        bad += (cksum::run(k, p) != st) as u64;
    }
    bad
}
fn row_pages<T: H, const NC: usize>(ck: Option<Ck>, h: &T, s: &mut Sum, b: &[u8]) {
    for p in pages(b) {
        if let Some(k) = ck {
            let st = u32::from_le_bytes(p[60..64].try_into().unwrap());
            if cksum::run(k, p) != st {
                s.bad += 1;
                continue;
            }
        }
        rows::page::<T, NC>(p, h, s);
    }
}

fn gen(path: &str, gb: u64) {
    let mut f = std::io::BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let mut rng = Rng(42);
    let mut id = 1i64;
    let mut p = vec![0u8; PAGE];
    let n = gb * (1 << 30) / PAGE as u64;
    for i in 0..n {
        make_page(&mut p, i as u32, &mut id, &mut rng);
        f.write_all(&p).unwrap();
    }
    f.flush().unwrap();
    f.get_ref().sync_all().unwrap();
    println!("{n} pages, {} rows, {:.1} rows/page", id - 1, (id - 1) as f64 / n as f64);
}

fn mem() {
    for th in [1usize, 2] {
        let n = 1usize << 30;
        let mut b = Buf::new(n * th);
        b.s().fill(7);
        let m = Map { p: b.p, n: n * th };
        bench(&format!("RAM read, anonymous, {th} thread"), (n * th) as u64, 0, 9, || {
            bb(map_all::<u64>(&m, th, 1 << 20, |s, x| *s ^= xor_lines(x)).len());
        });
        std::mem::forget(m);
    }
    let mut a = Buf::new(1 << 30);
    let mut b = Buf::new(1 << 20);
    b.s().fill(3);
    bench("memcpy 1 GB -> 1 MB buffer, 1 thread", 1 << 30, 0, 9, || {
        for c in a.s().chunks(1 << 20) {
            b.s().copy_from_slice(c);
            bb(b.s()[5]);
        }
    });
}

fn io(path: &str) {
    let f = File::open(path).unwrap();
    let len = f.metadata().unwrap().len();
    bb(pread_all::<u64>(&f, 1, 1 << 20, |_, _| ())); // warm
    let n = 7;
    for th in [1usize, 2] {
        for kb in [64usize, 256, 1024, 4096] {
            bench(&format!("pread {kb} KB, cached, {th}t"), len, 0, n, || {
                bb(pread_all::<u64>(&f, th, kb << 10, |s, x| *s += x[0] as u64))
            });
        }
        bench(&format!("mmap touch 1 B/4 KB, fresh map, {th}t"), len, 0, n, || {
            let m = Map::new(&f, false);
            bb(map_all::<u64>(&m, th, 1 << 20, |s, x| *s += touch(x, 4096)))
        });
        bench(&format!("mmap read all bytes, fresh map, {th}t"), len, 0, n, || {
            let m = Map::new(&f, false);
            bb(map_all::<u64>(&m, th, 1 << 20, |s, x| *s ^= xor_lines(x)))
        });
        bench(&format!("mmap+MAP_POPULATE read all bytes, {th}t"), len, 0, n, || {
            let m = Map::new(&f, true);
            bb(map_all::<u64>(&m, th, 1 << 20, |s, x| *s ^= xor_lines(x)))
        });
        let m = Map::new(&f, true);
        bench(&format!("mmap read all bytes, map kept, {th}t"), len, 0, n, || {
            bb(map_all::<u64>(&m, th, 1 << 20, |s, x| *s ^= xor_lines(x)))
        });
        drop(m);
        for (qd, kb) in [(4usize, 256usize), (4, 1024), (16, 1024)] {
            match uring_all::<u64>(&f, th, kb << 10, qd, |_, _| ()) {
                Err(e) => println!("io_uring refused: {e}"),
                Ok(_) => bench(&format!("io_uring cached {kb} KB qd{qd} fixed bufs, {th}t"), len, 0, n, || {
                    bb(uring_all::<u64>(&f, th, kb << 10, qd, |s, x| *s += x[0] as u64).unwrap())
                }),
            }
        }
    }
}

fn cold(path: &str) {
    let f = File::open(path).unwrap();
    let len = f.metadata().unwrap().len();
    let d = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    let n = 3;
    for th in [1usize, 2] {
        for kb in [64usize, 1024, 4096] {
            bench(&format!("O_DIRECT pread {kb} KB, {th}t"), len, 0, n, || {
                bb(pread_all::<u64>(&d, th, kb << 10, |s, x| *s += x[0] as u64))
            });
        }
        for (qd, kb) in [(4usize, 1024usize), (16, 256), (16, 1024)] {
            match uring_all::<u64>(&d, th, kb << 10, qd, |_, _| ()) {
                Err(e) => println!("io_uring O_DIRECT refused: {e}"),
                Ok(_) => bench(&format!("O_DIRECT io_uring {kb} KB qd{qd}, {th}t"), len, 0, n, || {
                    bb(uring_all::<u64>(&d, th, kb << 10, qd, |s, x| *s += x[0] as u64).unwrap())
                }),
            }
        }
        bench(&format!("O_DIRECT io_uring 1 MB qd8 + checksum, {th}t"), len, 0, n, || {
            bb(uring_all::<u64>(&d, th, 1 << 20, 8, |s, x| *s += ck_pages(Ck::best(), x)).unwrap())
        });
        bench(&format!("buffered cold pread 1 MB (DONTNEED first), {th}t"), len, 0, n, || {
            unsafe {
                libc::posix_fadvise(f.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
            }
            bb(pread_all::<u64>(&f, th, 1 << 20, |s, x| *s += x[0] as u64))
        });
    }
}

fn ck(path: &str) {
    let f = File::open(path).unwrap();
    let len = f.metadata().unwrap().len();
    bb(pread_all::<u64>(&f, 1, 1 << 20, |_, _| ()));
    let mut l2 = Buf::new(512 << 10);
    f.read_exact_at(l2.s(), 0).unwrap();
    for k in Ck::all() {
        for p in pages(l2.s()) {
            assert_eq!(cksum::run(k, p), u32::from_le_bytes(p[60..64].try_into().unwrap()));
        }
        let reps = 4000u64;
        bench(&format!("checksum {k:?}, 512 KB in L2, 1t"), reps * (512 << 10), 0, 7, || {
            for _ in 0..reps {
                bb(ck_pages(k, std::hint::black_box(l2.s())));
            }
        });
    }
    for th in [1usize, 2] {
        for kb in [128usize, 256, 512, 1024, 4096] {
            bench(&format!("pread {kb} KB + checksum {:?}, {th}t", Ck::best()), len, 0, 7, || {
                assert_eq!(
                    0,
                    pread_all::<u64>(&f, th, kb << 10, |s, x| *s += ck_pages(Ck::best(), x)).iter().sum::<u64>()
                )
            });
        }
        for k in Ck::all().filter(|&k| k != Ck::best()) {
            bench(&format!("pread 256 KB + checksum {k:?}, {th}t"), len, 0, 5, || {
                assert_eq!(0, pread_all::<u64>(&f, th, 256 << 10, |s, x| *s += ck_pages(k, x)).iter().sum::<u64>())
            });
        }
        for k in Ck::all().filter(|&k| k != Ck::Naive) {
            bench(&format!("mmap fresh + checksum {k:?}, {th}t"), len, 0, 5, || {
                let m = Map::new(&f, false);
                assert_eq!(0, map_all::<u64>(&m, th, 1 << 20, |s, x| *s += ck_pages(k, x)).iter().sum::<u64>())
            });
        }
        let m = Map::new(&f, true);
        for k in Ck::all().filter(|&k| k != Ck::Naive) {
            bench(&format!("mmap kept + checksum {k:?}, {th}t"), len, 0, 5, || {
                assert_eq!(0, map_all::<u64>(&m, th, 1 << 20, |s, x| *s += ck_pages(k, x)).iter().sum::<u64>())
            });
        }
    }
}

fn one<T: H + Sync, const NC: usize>(name: &str, f: &File, l2: &[u8], h: &T, ck: Option<Ck>, stream: bool) {
    let len = f.metadata().unwrap().len();
    let mut s = Sum::default();
    row_pages::<T, NC>(ck, h, &mut s, l2);
    assert_eq!(s.bad, 0);
    let per = s.n;
    let reps = 1000u64;
    bench(&format!("{name}, L2, 1t"), reps * l2.len() as u64, reps * per, 7, || {
        let mut s = Sum::default();
        for _ in 0..reps {
            row_pages::<T, NC>(ck, h, &mut s, std::hint::black_box(l2));
        }
        bb(s);
    });
    if !stream {
        return;
    }
    let mut last: Option<Sum> = None;
    let total = {
        let mut t = Sum::default();
        for x in pread_all::<Sum>(f, 2, 256 << 10, |s, x| row_pages::<T, NC>(ck, h, s, x)) {
            t.merge(&x);
        }
        t.n
    };
    for th in [1usize, 2] {
        bench(&format!("{name}, pread 256 KB, {th}t"), len, total, 5, || {
            let mut t = Sum::default();
            for x in pread_all::<Sum>(f, th, 256 << 10, |s, x| row_pages::<T, NC>(ck, h, s, x)) {
                t.merge(&x);
            }
            assert_eq!(t.bad, 0);
            if let Some(l) = last {
                assert_eq!(l, t);
            } // order- and thread-independent
            last = Some(t);
        });
    }
}
fn rows_cmd(path: &str, pieces_only: bool) {
    let f = File::open(path).unwrap();
    let mut l2b = Buf::new(512 << 10);
    f.read_exact_at(l2b.s(), 0).unwrap();
    let l2: &[u8] = l2b.s();
    bb(pread_all::<u64>(&f, 1, 1 << 20, |_, _| ()));
    let c = Some(Ck::best());
    one::<_, 0>("parse only, no checksum", &f, l2, &NoHash, None, false);
    one::<_, 0>("ck+parse", &f, l2, &NoHash, c, true);
    let ah = AHash(ahash::RandomState::with_seeds(1, 2, 3, 4));
    let fh = Fold(foldhash::fast::FixedState::with_seed(5));
    macro_rules! all {
        ($n:literal, $h:expr, $st:expr) => {{
            one::<_, 0>(concat!("ck+parse+", $n), &f, l2, $h, c, $st);
            one::<_, 1>(concat!("ck+parse+", $n, "+1 NC"), &f, l2, $h, c, $st);
            one::<_, 2>(concat!("ck+parse+", $n, "+2 NC"), &f, l2, $h, c, $st);
        }};
    }
    if !pieces_only {
        all!("xxh3_64", &Xxh64, true);
        all!("xxh3_128", &Xxh128, false);
        all!("ahash", &ah, true);
        all!("foldhash", &fh, false);
        #[cfg(feature = "gx")]
        {
            all!("gxhash64", &Gx64, true);
            all!("gxhash128", &Gx128, true);
        }
        all!("mulrot", &MulRot, true);
        all!("mum", &Mum, true);
    }
    all!("mum, columns in place", &MumP, true);
    all!("xxh3_64, columns in place", &XxhP, true);
    if is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512bw") {
        all!("vaes masked, in place", &Vaes, true);
    }
}

struct Cells<T: H>(T, std::cell::UnsafeCell<[(u64, u64); 1024]>);
impl<T: H> H for Cells<T> {
    const PIECES: bool = T::PIECES;
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        let h = self.0.h(b);
        rows::cell_add(unsafe { &mut *self.1.get() }, h);
        h
    }
    #[inline(always)]
    fn p1(&self, a: u32, id: u64) -> u128 {
        let h = self.0.p1(a, id);
        rows::cell_add(unsafe { &mut *self.1.get() }, h);
        h
    }
    #[inline(always)]
    fn p2(&self, id: u64, s: &[u8]) -> u128 {
        let h = self.0.p2(id, s);
        rows::cell_add(unsafe { &mut *self.1.get() }, h);
        h
    }
}
fn nc_one<T: H + Sync>(name: &str, big: &[u8], h: &T) {
    for (w, b, reps) in [("L2", &big[..512 << 10], 1000u64), ("RAM", big, 1)] {
        let run = |s: &mut Sum| {
            for p in pages(std::hint::black_box(b)) {
                s.bad += (cksum::run(Ck::best(), p) != u32::from_le_bytes(p[60..64].try_into().unwrap())) as u64;
                rows::nc_page(p, h, s);
            }
        };
        let mut s = Sum::default();
        run(&mut s);
        assert_eq!(s.bad, 0);
        let n = s.n;
        bench(&format!("NC leaf ck+parse+order+{name}, {w}, 1t"), reps * b.len() as u64, reps * n, 7, || {
            let mut s = Sum::default();
            for _ in 0..reps {
                run(&mut s)
            }
            bb(s)
        });
    }
}
fn nc() {
    let mut b = Buf::new(1 << 30);
    let (mut rng, mut key) = (Rng(9), 0u64);
    for (i, p) in b.s().chunks_exact_mut(PAGE).enumerate() {
        make_nc_page(p, i as u32, &mut key, &mut rng);
    }
    let b: &[u8] = b.s();
    nc_one("no hash", b, &NoHash);
    nc_one("xxh3_64", b, &Xxh64);
    nc_one("ahash", b, &AHash(ahash::RandomState::with_seeds(1, 2, 3, 4)));
    nc_one("mulrot", b, &MulRot);
    nc_one("mum", b, &Mum);
    nc_one("columns in place", b, &MumP);
}
fn cells(path: &str) {
    // one thread: the cells are not shared
    let f = File::open(path).unwrap();
    let len = f.metadata().unwrap().len();
    fn go<T: H, const NC: usize>(name: &str, f: &File, len: u64, h: T) {
        let h = Cells(h, std::cell::UnsafeCell::new([(0, 0); 1024]));
        let mut b = Buf::new(256 << 10);
        let mut n = 0;
        bench(name, len, 52_145_093, 5, || {
            let mut s = Sum::default();
            let mut o = 0;
            while o < len {
                let k = f.read_at(b.s(), o).unwrap();
                row_pages::<T2<'_, T>, NC>(Some(Ck::best()), &T2(&h), &mut s, &b.s()[..k]);
                o += k as u64;
            }
            assert_eq!(s.bad, 0);
            n = s.n;
        });
        println!("   ({n} rows)");
    }
    go::<_, 0>("mum in place + 1024 cells, base, pread, 1t", &f, len, MumP);
    go::<_, 2>("mum in place + 1024 cells, +2 NC, pread, 1t", &f, len, MumP);
}
struct T2<'a, T: H>(&'a Cells<T>);
impl<T: H> H for T2<'_, T> {
    const PIECES: bool = T::PIECES;
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        self.0.h(b)
    }
    #[inline(always)]
    fn p1(&self, a: u32, id: u64) -> u128 {
        self.0.p1(a, id)
    }
    #[inline(always)]
    fn p2(&self, id: u64, s: &[u8]) -> u128 {
        self.0.p2(id, s)
    }
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    match a[1].as_str() {
        "gen" => gen(&a[2], a[3].parse().unwrap()),
        "mem" => mem(),
        "io" => io(&a[2]),
        "cold" => cold(&a[2]),
        "ck" => ck(&a[2]),
        "rows" => rows_cmd(&a[2], a.len() > 3),
        "nc" => nc(),
        "cells" => cells(&a[2]),
        _ => panic!("nc|cells|gen|mem|io|cold|ck|rows"),
    }
}
