//! Ways to read a file: pread, a map, io_uring.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Memory that is there before it is used.
pub struct Buf {
    pub p: *mut u8,
    n: usize,
}
unsafe impl Send for Buf {}
impl Buf {
    pub fn new(n: usize) -> Buf {
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                n,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        } as *mut u8;
        Buf { p, n }
    }
    pub fn s(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.p, self.n) }
    }
}
impl Drop for Buf {
    fn drop(&mut self) {
        unsafe {
            libc::munmap(self.p as *mut _, self.n);
        }
    }
}

/// A file in memory.
pub struct Map {
    pub p: *const u8,
    pub n: usize,
}
unsafe impl Sync for Map {}
impl Map {
    pub fn new(f: &File, populate: bool) -> Map {
        let n = f.metadata().unwrap().len() as usize;
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                n,
                libc::PROT_READ,
                libc::MAP_SHARED | if populate { libc::MAP_POPULATE } else { 0 },
                f.as_raw_fd(),
                0,
            )
        } as *const u8;
        Map { p, n }
    }
    pub fn s(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.p, self.n) }
    }
}
impl Drop for Map {
    fn drop(&mut self) {
        unsafe {
            libc::munmap(self.p as *mut _, self.n);
        }
    }
}

/// Give out [0, len) in `chunk`-sized pieces to `th` threads; each thread reads with pread into its
/// own buffer and calls work(state, bytes).
pub fn pread_all<S: Default + Send>(f: &File, th: usize, chunk: usize, work: impl Fn(&mut S, &[u8]) + Sync) -> Vec<S> {
    let len = f.metadata().unwrap().len();
    let next = AtomicU64::new(0);
    std::thread::scope(|sc| {
        let hs: Vec<_> = (0..th)
            .map(|_| {
                sc.spawn(|| {
                    let mut b = Buf::new(chunk);
                    let mut st = S::default();
                    loop {
                        let o = next.fetch_add(chunk as u64, Relaxed);
                        if o >= len {
                            return st;
                        }
                        let n = f.read_at(b.s(), o).unwrap();
                        work(&mut st, &b.s()[..n]);
                    }
                })
            })
            .collect();
        hs.into_iter().map(|h| h.join().unwrap()).collect()
    })
}
pub fn map_all<S: Default + Send>(m: &Map, th: usize, chunk: usize, work: impl Fn(&mut S, &[u8]) + Sync) -> Vec<S> {
    let next = AtomicU64::new(0);
    let len = m.n as u64;
    std::thread::scope(|sc| {
        let hs: Vec<_> = (0..th)
            .map(|_| {
                sc.spawn(|| {
                    let mut st = S::default();
                    loop {
                        let o = next.fetch_add(chunk as u64, Relaxed);
                        if o >= len {
                            return st;
                        }
                        work(&mut st, &m.s()[o as usize..((o + chunk as u64).min(len)) as usize]);
                    }
                })
            })
            .collect();
        hs.into_iter().map(|h| h.join().unwrap()).collect()
    })
}
/// One ring per thread, `qd` reads of `chunk` bytes in flight, registered (fixed) buffers.
pub fn uring_all<S: Default + Send>(
    f: &File,
    th: usize,
    chunk: usize,
    qd: usize,
    work: impl Fn(&mut S, &[u8]) + Sync,
) -> std::io::Result<Vec<S>> {
    use io_uring::{opcode, types, IoUring};
    let len = f.metadata()?.len();
    let next = AtomicU64::new(0);
    let fd = f.as_raw_fd();
    std::thread::scope(|sc| {
        let hs: Vec<std::thread::ScopedJoinHandle<std::io::Result<S>>> = (0..th)
            .map(|_| {
                sc.spawn(|| -> std::io::Result<S> {
                    let mut ring: IoUring = IoUring::builder().build(qd.next_power_of_two() as u32)?;
                    let mut bufs: Vec<Buf> = (0..qd).map(|_| Buf::new(chunk)).collect();
                    let iov: Vec<libc::iovec> =
                        bufs.iter().map(|b| libc::iovec { iov_base: b.p as *mut _, iov_len: chunk }).collect();
                    unsafe { ring.submitter().register_buffers(&iov)? };
                    let mut st = S::default();
                    let mut fl = 0;
                    for i in 0..qd {
                        let o = next.fetch_add(chunk as u64, Relaxed);
                        if o >= len {
                            break;
                        }
                        let e = opcode::ReadFixed::new(types::Fd(fd), bufs[i].p, chunk as u32, i as u16)
                            .offset(o)
                            .build()
                            .user_data(i as u64);
                        unsafe { ring.submission().push(&e).unwrap() };
                        fl += 1;
                    }
                    while fl > 0 {
                        ring.submit_and_wait(1)?;
                        let done: Vec<_> = ring
                            .completion()
                            .map(|c: io_uring::cqueue::Entry| (c.user_data() as usize, c.result()))
                            .collect();
                        for (i, r) in done {
                            fl -= 1;
                            if r < 0 {
                                return Err(std::io::Error::from_raw_os_error(-r));
                            }
                            work(&mut st, &bufs[i].s()[..r as usize]);
                            let o = next.fetch_add(chunk as u64, Relaxed);
                            if o < len {
                                let e = opcode::ReadFixed::new(types::Fd(fd), bufs[i].p, chunk as u32, i as u16)
                                    .offset(o)
                                    .build()
                                    .user_data(i as u64);
                                unsafe { ring.submission().push(&e).unwrap() };
                                fl += 1;
                            }
                        }
                    }
                    Ok(st)
                })
            })
            .collect();
        hs.into_iter().map(|h| h.join().unwrap()).collect()
    })
}
