//! Page checksum: 16 sectors x 128 u32; xor of each sector (word at 0x3C skipped), rotated left by
//! 15 - sector, all xored. Horner form: acc = rotl(acc, 1) ^ sector, done lane-wise.
use crate::page::PAGE;
use std::arch::x86_64::*;

#[inline(always)]
fn stored(p: &[u8; PAGE]) -> u32 {
    u32::from_le_bytes(p[60..64].try_into().unwrap())
}
// the skipped word sits in sector 0, so it is rotated by 15: xor it back out at the end
#[inline(always)]
fn fix(acc: u32, p: &[u8; PAGE]) -> u32 {
    acc ^ stored(p).rotate_left(15)
}

/// Straight from the definition, one word at a time.
pub fn naive(p: &[u8; PAGE]) -> u32 {
    let mut out = 0u32;
    for s in 0..16 {
        let mut x = 0u32;
        for w in 0..128 {
            let o = s * 512 + w * 4;
            if o != 0x3C {
                x ^= u32::from_le_bytes(p[o..o + 4].try_into().unwrap());
            }
        }
        out ^= x.rotate_left(15 - s as u32);
    }
    out
}

#[inline(always)]
fn plain_body(p: &[u8; PAGE]) -> u32 {
    let mut acc = [0u32; 32];
    for s in 0..16 {
        for a in acc.iter_mut() {
            *a = a.rotate_left(1);
        }
        for c in 0..4 {
            let o = s * 512 + c * 128;
            for i in 0..32 {
                acc[i] ^= u32::from_le_bytes(p[o + i * 4..o + i * 4 + 4].try_into().unwrap());
            }
        }
    }
    let mut x = 0;
    for a in acc {
        x ^= a;
    }
    fix(x, p)
}
pub fn plain(p: &[u8; PAGE]) -> u32 {
    plain_body(p)
}

#[target_feature(enable = "avx2")]
pub unsafe fn avx2(p: &[u8; PAGE]) -> u32 {
    let q = p.as_ptr() as *const __m256i;
    let mut a = [_mm256_setzero_si256(); 4];
    for s in 0..16 {
        for v in a.iter_mut() {
            *v = _mm256_or_si256(_mm256_slli_epi32::<1>(*v), _mm256_srli_epi32::<31>(*v));
        }
        let b = q.add(s * 16);
        for c in 0..4 {
            for k in 0..4 {
                a[k] = _mm256_xor_si256(a[k], _mm256_loadu_si256(b.add(c * 4 + k)));
            }
        }
    }
    let x = _mm256_xor_si256(_mm256_xor_si256(a[0], a[1]), _mm256_xor_si256(a[2], a[3]));
    let mut t = [0u32; 8];
    _mm256_storeu_si256(t.as_mut_ptr() as *mut __m256i, x);
    fix(t.iter().fold(0, |m, v| m ^ v), p)
}

#[target_feature(enable = "avx512f")]
pub unsafe fn avx512(p: &[u8; PAGE]) -> u32 {
    let q = p.as_ptr() as *const __m512i;
    let mut a = [_mm512_setzero_si512(); 4];
    for s in 0..16 {
        let b = q.add(s * 8);
        for k in 0..4 {
            let r = _mm512_rol_epi32::<1>(a[k]);
            a[k] = _mm512_ternarylogic_epi32::<0x96>(r, _mm512_loadu_si512(b.add(k)), _mm512_loadu_si512(b.add(k + 4)));
        }
    }
    let x = _mm512_xor_si512(_mm512_xor_si512(a[0], a[1]), _mm512_xor_si512(a[2], a[3]));
    let mut t = [0u32; 16];
    _mm512_storeu_si512(t.as_mut_ptr() as *mut __m512i, x);
    fix(t.iter().fold(0, |m, v| m ^ v), p)
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ck {
    Naive,
    Plain,
    Avx2,
    Avx512,
}
impl Ck {
    /// The fastest that this processor has.
    pub fn best() -> Ck {
        if is_x86_feature_detected!("avx512f") {
            Ck::Avx512
        } else if is_x86_feature_detected!("avx2") {
            Ck::Avx2
        } else {
            Ck::Plain
        }
    }
    /// All that this processor has.
    pub fn all() -> impl Iterator<Item = Ck> {
        [Ck::Naive, Ck::Plain, Ck::Avx2, Ck::Avx512].into_iter().filter(|k| match k {
            Ck::Avx2 => is_x86_feature_detected!("avx2"),
            Ck::Avx512 => is_x86_feature_detected!("avx512f"),
            Ck::Naive | Ck::Plain => true,
        })
    }
}
#[inline(always)]
pub fn run(k: Ck, p: &[u8; PAGE]) -> u32 {
    match k {
        Ck::Naive => naive(p),
        Ck::Plain => plain(p),
        Ck::Avx2 => unsafe { avx2(p) },
        Ck::Avx512 => unsafe { avx512(p) },
    }
}
