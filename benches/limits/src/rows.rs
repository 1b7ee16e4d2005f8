//! Slot-array walk, FixedVar parse with the structural tests a checker needs, row hashing into an
//! order-independent sum, and building + hashing the rows a nonclustered index ought to have.
use crate::page::PAGE;
use std::hash::{BuildHasher, Hasher};

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Sum {
    pub n: u64,
    pub base: u128,
    pub nc1: u128,
    pub nc2: u128,
    pub bad: u64,
}
impl Sum {
    pub fn merge(&mut self, o: &Sum) {
        self.n += o.n;
        self.bad += o.bad;
        self.base = self.base.wrapping_add(o.base);
        self.nc1 = self.nc1.wrapping_add(o.nc1);
        self.nc2 = self.nc2.wrapping_add(o.nc2);
    }
}

pub trait H {
    fn h(&self, b: &[u8]) -> u128;
    /// Hash the index row (a, id) / (s1, id). Default: build the row in a buffer, then hash it.
    /// PIECES = true: mix the columns straight from the page, nothing is copied.
    const PIECES: bool = false;
    fn p1(&self, _a: u32, _id: u64) -> u128 {
        0
    }
    fn p2(&self, _id: u64, _s: &[u8]) -> u128 {
        0
    }
}
/// Mum for whole rows, with index rows hashed column by column in place.
pub struct MumP;
impl H for MumP {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        Mum.h(b)
    }
    const PIECES: bool = true;
    #[inline(always)]
    fn p1(&self, a: u32, id: u64) -> u128 {
        mum(mum(a as u64 ^ 0x2d358dccaa6c78a5, id ^ 0x8bb84b93962eacc9) ^ 0x8ebc6af09c88c6e3, id ^ 0x589965cc75374cc3)
            as u128
    }
    #[inline(always)]
    fn p2(&self, id: u64, s: &[u8]) -> u128 {
        mum(Mum.h(s) as u64 ^ 0x8ebc6af09c88c6e3, id ^ 0x589965cc75374cc3) as u128
    }
}
/// xxh3_64 for whole rows and for strings; fixed-width columns mixed with one or two multiplies.
pub struct XxhP;
impl H for XxhP {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        Xxh64.h(b)
    }
    const PIECES: bool = true;
    #[inline(always)]
    fn p1(&self, a: u32, id: u64) -> u128 {
        MumP.p1(a, id)
    }
    #[inline(always)]
    fn p2(&self, id: u64, s: &[u8]) -> u128 {
        mum(xxhash_rust::xxh3::xxh3_64(s) ^ 0x8ebc6af09c88c6e3, id ^ 0x589965cc75374cc3) as u128
    }
}
/// No branch on the length up to 128 bytes: masked 64-byte loads (bytes past the row read as zero,
/// and are not touched), one VAES round per 64-byte block on its own keys, lanes folded by AES rounds.
pub struct Vaes;
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,sse4.1,bmi2")]
#[inline]
unsafe fn vaes(b: &[u8]) -> u128 {
    use std::arch::x86_64::*;
    let n = b.len();
    let p = b.as_ptr();
    let k0 = _mm512_set_epi64(
        0x243F6A8885A308D3,
        0x13198A2E03707344,
        0x2299F31D0082EFA9u64 as i64,
        0x2C4E6C89452821E6,
        0x38D01377BE5466CF,
        0x34E90C6C7C97C50D,
        0x3F84D5B5B5470917,
        0x1216D5D98979FB1B,
    );
    let k1 = _mm512_set_epi64(
        0x5107A6B5D1310BA6,
        0x18DFB5AC2FFD72DB,
        0x501ADFB7B8E1AFED,
        0x6A267E96BA7C9045,
        0x712C7F9924A19947,
        0x33916CF70801F2E2,
        0x0858EFC16636920D,
        0x71574E69A458FEA3,
    );
    let m0 = _bzhi_u64(u64::MAX, n.min(64) as u32);
    let m1 = _bzhi_u64(u64::MAX, n.saturating_sub(64).min(64) as u32);
    let a = _mm512_maskz_loadu_epi8(m0, p as *const i8);
    let c = _mm512_maskz_loadu_epi8(m1, p.wrapping_add(64) as *const i8);
    let mut x = _mm512_aesenc_epi128(_mm512_xor_si512(a, k0), k1);
    let mut y = _mm512_aesenc_epi128(_mm512_xor_si512(c, k1), k0);
    let mut o = 128;
    while o < n {
        let m = _bzhi_u64(u64::MAX, (n - o).min(64) as u32);
        let d = _mm512_maskz_loadu_epi8(m, p.add(o) as *const i8);
        y = _mm512_aesenc_epi128(y, x);
        x = _mm512_aesenc_epi128(x, d);
        o += 64;
    }
    let z = _mm512_aesenc_epi128(x, y);
    let l = _mm_set_epi64x(n as i64, 0x636920D871574E69);
    let u = _mm_aesenc_si128(_mm512_extracti32x4_epi32::<0>(z), _mm512_extracti32x4_epi32::<1>(z));
    let v = _mm_aesenc_si128(_mm512_extracti32x4_epi32::<2>(z), _mm512_extracti32x4_epi32::<3>(z));
    let w = _mm_aesenc_si128(_mm_aesenc_si128(_mm_xor_si128(u, l), v), l);
    std::mem::transmute::<__m128i, u128>(w)
}
impl H for Vaes {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        unsafe { vaes(b) }
    }
    const PIECES: bool = true;
    #[inline(always)]
    fn p1(&self, a: u32, id: u64) -> u128 {
        MumP.p1(a, id)
    }
    #[inline(always)]
    fn p2(&self, id: u64, s: &[u8]) -> u128 {
        let h = unsafe { vaes(s) };
        mum(h as u64 ^ id, (h >> 64) as u64 ^ 0x589965cc75374cc3 ^ id.rotate_left(32)) as u128
    }
}
pub struct NoHash; // parse only: fold in the length so that the parse is not optimised away
impl H for NoHash {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        b.len() as u128
    }
}
pub struct Xxh64;
impl H for Xxh64 {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        xxhash_rust::xxh3::xxh3_64(b) as u128
    }
}
pub struct Xxh128;
impl H for Xxh128 {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        xxhash_rust::xxh3::xxh3_128(b)
    }
}
pub struct AHash(pub ahash::RandomState);
impl H for AHash {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        let mut x = self.0.build_hasher();
        x.write(b);
        x.finish() as u128
    }
}
pub struct Fold(pub foldhash::fast::FixedState);
impl H for Fold {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        let mut x = self.0.build_hasher();
        x.write(b);
        x.finish() as u128
    }
}
#[cfg(feature = "gx")]
pub struct Gx64;
#[cfg(feature = "gx")]
impl H for Gx64 {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        gxhash::gxhash64(b, 7) as u128
    }
}
#[cfg(feature = "gx")]
pub struct Gx128;
#[cfg(feature = "gx")]
impl H for Gx128 {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        gxhash::gxhash128(b, 7)
    }
}
/// 8 bytes at a time: rotate, xor, multiply (FxHash-like), with a final avalanche.
pub struct MulRot;
impl H for MulRot {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        const K: u64 = 0x9E3779B97F4A7C15;
        let mut h = (b.len() as u64).wrapping_mul(K);
        let n = b.len();
        let mut i = 0;
        while i + 8 <= n {
            let w = unsafe { (b.as_ptr().add(i) as *const u64).read_unaligned() };
            h = (h.rotate_left(29) ^ w).wrapping_mul(K);
            i += 8;
        }
        if i < n {
            let mut w = 0u64;
            if n >= 8 {
                w = unsafe { (b.as_ptr().add(n - 8) as *const u64).read_unaligned() }
            } else {
                for &c in &b[i..] {
                    w = w << 8 | c as u64
                }
            }
            h = (h.rotate_left(29) ^ w).wrapping_mul(K);
        }
        h ^= h >> 32;
        h = h.wrapping_mul(0xD6E8FEB86659FD93);
        (h ^ (h >> 32)) as u128
    }
}
/// Two 64-bit lanes folded through a 64x64->128 multiply per 16 bytes (wyhash-like): 2 chains.
pub struct Mum;
#[inline(always)]
fn mum(a: u64, b: u64) -> u64 {
    let r = a as u128 * b as u128;
    (r as u64) ^ (r >> 64) as u64
}
impl H for Mum {
    #[inline(always)]
    fn h(&self, b: &[u8]) -> u128 {
        let n = b.len();
        let p = b.as_ptr();
        let rd = |o: usize| unsafe { (p.add(o) as *const u64).read_unaligned() };
        let (mut x, mut y) = (0x2d358dccaa6c78a5u64 ^ n as u64, 0x8bb84b93962eacc9u64);
        if n >= 16 {
            let mut i = 0;
            while i + 32 <= n {
                x = mum(rd(i) ^ 0x4b33a62ed433d4a3, rd(i + 8) ^ x);
                y = mum(rd(i + 16) ^ 0x4d5a2da51de1aa47, rd(i + 24) ^ y);
                i += 32;
            }
            if i + 16 < n {
                x = mum(rd(i) ^ 0xa0761d6478bd642f, rd(i + 8) ^ x);
            }
            y = mum(rd(n - 16) ^ 0xe7037ed1a0b428db, rd(n - 8) ^ y);
        } else if n >= 8 {
            x = mum(rd(0) ^ x, rd(n - 8) ^ y);
        } else {
            for &c in b {
                x = mum(x ^ c as u64, y)
            }
        }
        mum(x ^ 0x8ebc6af09c88c6e3, y ^ 0x589965cc75374cc3) as u128
    }
}

#[inline(always)]
unsafe fn r16(p: *const u8) -> usize {
    (p as *const u16).read_unaligned() as usize
}

/// NC = how many nonclustered indexes' rows to build per base row (0, 1, 2).
/// Structural tests: slot inside the used area, no overlap, record type, fixed end = pminlen,
/// column count, var offsets rising and inside the page, key order, datetime in range, null bits.
#[inline(always)]
pub fn page<T: H, const NC: usize>(pg: &[u8; PAGE], h: &T, s: &mut Sum) {
    unsafe {
        let p = pg.as_ptr();
        let n = r16(p.add(22));
        let free = r16(p.add(30));
        let pmin = r16(p.add(14));
        if n > 4000 || free > PAGE - 2 * n || free < 96 {
            s.bad += 1;
            return;
        }
        let mut prev_end = 96usize;
        let mut prev_key = i64::MIN;
        let mut bad = 0u64;
        let mut buf = [0u8; 64];
        for i in 0..n {
            let off = r16(p.add(PAGE - 2 * (i + 1)));
            // fast path: slots in offset order; a checker falls back to a bitmap otherwise
            if off < prev_end || off + 37 > free {
                bad += 1;
                continue;
            }
            let r = p.add(off);
            let fe = r16(r.add(2));
            if *r & 0x0e != 0 || fe != pmin || off + fe + 9 > free {
                bad += 1;
                continue;
            }
            let ncol = r16(r.add(fe));
            let nb = (ncol + 7) / 8;
            let nulls = *r.add(fe + 2);
            let vc = r16(r.add(fe + 2 + nb));
            let va = fe + 4 + nb;
            if ncol != 6 || vc > 2 || off + va + 2 * vc > free {
                bad += 1;
                continue;
            }
            let mut pe = va + 2 * vc;
            let mut ok = true;
            let v1 = pe;
            let mut e1 = pe;
            for k in 0..vc {
                let e = r16(r.add(va + 2 * k));
                ok &= e >= pe;
                pe = e;
                if k == 0 {
                    e1 = e;
                }
            }
            ok &= off + pe <= free;
            if !ok {
                bad += 1;
                continue;
            }
            let key = (r.add(4) as *const i64).read_unaligned();
            let ticks = (r.add(20) as *const u32).read_unaligned();
            let days = (r.add(24) as *const i32).read_unaligned();
            bad += (key <= prev_key) as u64
                + (ticks >= 25_920_000) as u64
                + (days < -53690 || days > 2_958_463) as u64
                + (nulls & 0x3f != 0) as u64;
            prev_key = key;
            prev_end = off + pe;
            s.base = s.base.wrapping_add(h.h(std::slice::from_raw_parts(r, pe)));
            if T::PIECES {
                if NC >= 1 {
                    s.nc1 = s.nc1.wrapping_add(h.p1((r.add(12) as *const u32).read_unaligned(), key as u64));
                }
                if NC >= 2 {
                    s.nc2 = s.nc2.wrapping_add(h.p2(key as u64, std::slice::from_raw_parts(r.add(v1), e1 - v1)));
                }
                s.n += 1;
                continue;
            }
            if NC >= 1 {
                // index row (a, id) in index-leaf layout: status byte, key, clustering key
                buf[0] = 0x06;
                std::ptr::copy_nonoverlapping(r.add(12), buf.as_mut_ptr().add(1), 4);
                std::ptr::copy_nonoverlapping(r.add(4), buf.as_mut_ptr().add(5), 8);
                s.nc1 = s.nc1.wrapping_add(h.h(&buf[..13]));
            }
            if NC >= 2 {
                // index row (s1, id): status, id, ncol, null bitmap, var count, end offset, s1
                let l = (e1 - v1).min(46);
                buf[0] = 0x36;
                std::ptr::copy_nonoverlapping(r.add(4), buf.as_mut_ptr().add(1), 8);
                buf[9] = 2;
                buf[10] = 0;
                buf[11] = 0;
                buf[12] = 1;
                buf[13] = 0;
                (buf.as_mut_ptr().add(14) as *mut u16).write_unaligned((16 + l) as u16);
                // 48-byte over-copy stays inside the page buffer only when there is room
                if off + v1 + 48 <= PAGE {
                    std::ptr::copy_nonoverlapping(r.add(v1), buf.as_mut_ptr().add(16), 48);
                } else {
                    std::ptr::copy_nonoverlapping(r.add(v1), buf.as_mut_ptr().add(16), l);
                }
                s.nc2 = s.nc2.wrapping_add(h.h(&buf[..16 + l]));
            }
            s.n += 1;
        }
        s.bad += bad;
    }
}

/// Leaf page of a nonclustered index (a, id): slot, record type and key-order tests, then hash.
#[inline(always)]
pub fn nc_page<T: H>(pg: &[u8; PAGE], h: &T, s: &mut Sum) {
    unsafe {
        let p = pg.as_ptr();
        let n = r16(p.add(22));
        let free = r16(p.add(30));
        if n > 4000 || free > PAGE - 2 * n || free < 96 || r16(p.add(14)) != 13 {
            s.bad += 1;
            return;
        }
        let mut prev_end = 96usize;
        let (mut pa, mut pid) = (i32::MIN, i64::MIN);
        let mut bad = 0u64;
        let mut sum = 0u128;
        for i in 0..n {
            let off = r16(p.add(PAGE - 2 * (i + 1)));
            if off < prev_end || off + 13 > free {
                bad += 1;
                continue;
            }
            let r = p.add(off);
            let a = (r.add(1) as *const i32).read_unaligned();
            let id = (r.add(5) as *const i64).read_unaligned();
            bad += (*r != 0x06) as u64 + (a < pa || (a == pa && id <= pid)) as u64;
            pa = a;
            pid = id;
            prev_end = off + 13;
            sum = sum.wrapping_add(if T::PIECES {
                h.p1(a as u32, id as u64)
            } else {
                h.h(std::slice::from_raw_parts(r, 13))
            });
        }
        s.nc1 = s.nc1.wrapping_add(sum);
        s.n += n as u64;
        s.bad += bad;
    }
}
/// Same as `page::<T, 0>` followed by adding each row's hash to one of 1024 cells (count, sum) too,
/// so that a mismatch can be narrowed to 1/1024 of the rows: the price of localisation.
#[inline(always)]
pub fn cell_add(cells: &mut [(u64, u64); 1024], h: u128) {
    let c = &mut cells[(h as usize) & 1023];
    c.0 += 1;
    c.1 = c.1.wrapping_add((h >> 10) as u64);
}
