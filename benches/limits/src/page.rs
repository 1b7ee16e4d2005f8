//! Synthetic 8 KB data pages in the SQL Server FixedVar layout (leaf of a clustered index).
//! Row: statusA, statusB, u16 fixed end, id:i64, a:i32, b:i32, d:datetime(8), u16 ncols=6,
//! 1 byte null bitmap, u16 varcount=2, 2 x u16 end offsets, s1 (20..=36 bytes), s2 (8..=20 bytes).
pub const PAGE: usize = 8192;

pub struct Rng(pub u64);
impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E3779B97F4A7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
        z ^ (z >> 31)
    }
}

pub fn put16(p: &mut [u8], o: usize, v: u16) {
    p[o..o + 2].copy_from_slice(&v.to_le_bytes())
}
pub fn put32(p: &mut [u8], o: usize, v: u32) {
    p[o..o + 4].copy_from_slice(&v.to_le_bytes())
}

/// Fill one page; returns number of rows. `id` is advanced.
pub fn make_page(p: &mut [u8], pageno: u32, id: &mut i64, rng: &mut Rng) -> usize {
    p.fill(0);
    let mut off = 96usize;
    let mut n = 0usize;
    loop {
        let l1 = 20 + (rng.next() % 17) as usize;
        let l2 = 8 + (rng.next() % 13) as usize;
        let len = 28 + 2 + 1 + 2 + 4 + l1 + l2;
        if off + len + 2 * (n + 1) > PAGE {
            break;
        }
        let r = &mut p[off..off + len];
        r[0] = 0x30; // primary record, null bitmap, var columns
        put16(r, 2, 28);
        r[4..12].copy_from_slice(&id.to_le_bytes());
        put32(r, 12, rng.next() as u32);
        put32(r, 16, (rng.next() % 1000) as u32);
        put32(r, 20, (rng.next() % 25_920_000) as u32); // 1/300 s ticks in the day
        put32(r, 24, 40_000 + (rng.next() % 5000) as u32); // days
        put16(r, 28, 6);
        r[30] = 0xC0;
        put16(r, 31, 2);
        put16(r, 33, (37 + l1) as u16);
        put16(r, 35, (37 + l1 + l2) as u16);
        for b in r[37..].iter_mut() {
            *b = b'a' + (rng.next() % 26) as u8;
        }
        put16(p, PAGE - 2 * (n + 1), off as u16);
        off += len;
        n += 1;
        *id += 1;
    }
    p[0] = 1;
    p[1] = 1;
    put16(p, 4, 0x200); // checksum flag
    put16(p, 6, 256);
    put32(p, 8, pageno.wrapping_sub(1));
    put16(p, 12, 1);
    put16(p, 14, 28);
    put32(p, 16, pageno + 1);
    put16(p, 20, 1);
    put16(p, 22, n as u16);
    put16(p, 28, (PAGE - off - 2 * n) as u16);
    put16(p, 30, off as u16);
    put32(p, 32, pageno);
    put16(p, 36, 1);
    let c = crate::cksum::plain((&*p).try_into().unwrap());
    put32(p, 60, c);
    n
}

/// Leaf page of a nonclustered index (a int, id bigint): 13-byte fixed rows, no null bitmap.
pub fn make_nc_page(p: &mut [u8], pageno: u32, key: &mut u64, rng: &mut Rng) -> usize {
    p.fill(0);
    let (mut off, mut n) = (96usize, 0usize);
    while off + 13 + 2 * (n + 1) <= PAGE {
        *key += 1 + rng.next() % 3;
        p[off] = 0x06;
        put32(p, off + 1, (*key >> 1) as u32);
        p[off + 5..off + 13].copy_from_slice(&(*key).to_le_bytes());
        put16(p, PAGE - 2 * (n + 1), off as u16);
        off += 13;
        n += 1;
    }
    p[0] = 1;
    p[1] = 2;
    put16(p, 4, 0x200);
    put16(p, 6, 257);
    put32(p, 8, pageno.wrapping_sub(1));
    put16(p, 12, 1);
    put16(p, 14, 13);
    put32(p, 16, pageno + 1);
    put16(p, 20, 1);
    put16(p, 22, n as u16);
    put16(p, 28, (PAGE - off - 2 * n) as u16);
    put16(p, 30, off as u16);
    put32(p, 32, pageno);
    put16(p, 36, 1);
    let c = crate::cksum::plain((&*p).try_into().unwrap());
    put32(p, 60, c);
    n
}
