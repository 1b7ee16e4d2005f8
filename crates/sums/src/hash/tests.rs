use std::collections::HashSet;

use super::*;

fn row(hash: &FactHash, values: &[Option<&[u8]>]) -> (u64, u64) {
    let mut hasher = hash.hasher();
    for value in values {
        match value {
            Some(bytes) => hasher.add_bytes(bytes),
            None => hasher.add_null(),
        }
    }
    hasher.finish()
}

fn sum_of(rows: &[(u64, u64)]) -> Sum {
    let mut sum = Sum::default();
    rows.iter().for_each(|row| sum.add((*row).into()));
    sum
}

#[test]
fn seeds_repeat_and_differ() {
    let page = PageId::new(1, 7);
    assert_eq!(FactHash::new(Some(5)).page(page), FactHash::new(Some(5)).page(page));
    assert_ne!(FactHash::new(Some(5)).page(page), FactHash::new(Some(6)).page(page));
    assert_ne!(FactHash::new(None).page(page), FactHash::new(None).page(page), "a key of its own every run");
    // The published first outputs of SplitMix64 from seed 1234567.
    assert_eq!([spread(1_234_567, 1), spread(1_234_567, 2)], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
}

#[test]
fn each_bit_of_a_value_changes_both_halves() {
    let hash = FactHash::new(Some(1));
    for length in [1, 2, 4, 7, 8, 9, 16, 23, 64] {
        let value: Vec<u8> = (0..length).collect();
        let before = row(&hash, &[Some(&[1, 2, 3, 4]), Some(&value)]);
        for bit in 0..usize::from(length) * 8 {
            let mut value = value.clone();
            value[bit / 8] ^= 1 << (bit % 8);
            let after = row(&hash, &[Some(&[1, 2, 3, 4]), Some(&value)]);
            let changed = (before.0 ^ after.0, before.1 ^ after.1);
            assert!(changed.0.count_ones() > 8 && changed.1.count_ones() > 8, "bit {bit} of {length} bytes");
        }
    }
}

#[test]
fn rows_are_told_apart_by_where_their_values_begin() {
    let hash = FactHash::new(Some(2));
    let rows = [
        row(&hash, &[Some(b"ab"), Some(b"c")]),
        row(&hash, &[Some(b"a"), Some(b"bc")]),
        row(&hash, &[Some(b"abc"), Some(b"")]),
        row(&hash, &[Some(b"abc"), None]),
        row(&hash, &[None, Some(b"abc")]),
        row(&hash, &[Some(b"abc")]),
        row(&hash, &[Some(b"abc\0")]),
        row(&hash, &[Some(&[0; 8])]),
        row(&hash, &[Some(&[0; 7])]),
        row(&hash, &[Some(&[0xFF; 8])]),
        row(&hash, &[None, None]),
        row(&hash, &[None]),
        row(&hash, &[]),
    ];
    assert_eq!(rows.iter().collect::<HashSet<_>>().len(), rows.len());
}

#[test]
fn a_value_in_pieces_hashes_as_the_whole() {
    let hash = FactHash::new(Some(5));
    let value: Vec<u8> = (0..100).collect();
    for length in 0..value.len() {
        let whole = row(&hash, &[Some(&value[..length])]);
        for size in 1..=17 {
            let (mut hasher, mut pieces) = (hash.hasher(), Pieces::default());
            value[..length].chunks(size).for_each(|piece| pieces.add(&mut hasher, piece));
            pieces.end(&mut hasher);
            assert_eq!(hasher.finish(), whole, "{length} bytes in pieces of {size}");
        }
    }
}

#[test]
fn values_exchanged_between_rows_do_not_cancel() {
    let hash = FactHash::new(Some(3));
    let values: Vec<[u8; 4]> = (0..200u32).map(u32::to_le_bytes).collect();
    for (a, b) in values.iter().zip(values.iter().skip(1)) {
        let (a, b) = (Some(&a[..]), Some(&b[..]));
        let right = sum_of(&[row(&hash, &[a, a]), row(&hash, &[b, b])]);
        let exchanged = sum_of(&[row(&hash, &[a, b]), row(&hash, &[b, a])]);
        assert!(right.0 != exchanged.0 && right.1 != exchanged.1, "each half of the sum tells");
    }
}

#[test]
fn halves_of_hashes_collide_no_more_than_chance_has_it() {
    // Among 65,536 rows, 0.5 pairs with the same hash are expected on average if hashes have 32 bits, and none if they
    // have 64 bits.
    let hash = FactHash::new(Some(4));
    let rows: Vec<(u64, u64)> = (0..1u32 << 16)
        .map(|number| row(&hash, &[Some(&number.to_le_bytes()), Some(&(number / 7).to_le_bytes()), Some(b"name")]))
        .collect();
    for half in 0..4 {
        let bits = |row: &(u64, u64)| [row.0 as u32, (row.0 >> 32) as u32, row.1 as u32, (row.1 >> 32) as u32][half];
        let different = rows.iter().map(bits).collect::<HashSet<_>>().len();
        assert!(rows.len() - different <= 6, "half {half}: {} alike", rows.len() - different);
    }
    assert_eq!(
        rows.iter().map(|row| row.0 ^ row.1).collect::<HashSet<_>>().len(),
        rows.len(),
        "halves are of their own"
    );
}

#[test]
fn sums_tell_sets_apart_and_do_not_depend_on_order() {
    let hash = FactHash::new(None);
    let pages: Vec<PageId> = (0..1000).map(|page| PageId::new(1, page)).collect();
    let sum = |pages: &mut dyn Iterator<Item = &PageId>| {
        let mut sum = Sum::default();
        pages.for_each(|page| sum.add(hash.page(*page)));
        sum
    };
    assert_eq!(sum(&mut pages.iter()), sum(&mut pages.iter().rev()));
    assert_ne!(sum(&mut pages.iter()), sum(&mut pages.iter().skip(1)));
    let twice = [pages[3], pages[3]];
    assert_ne!(sum(&mut twice.iter()), Sum::default(), "equal surplus facts must not cancel");
    assert_ne!(hash.link(pages[1], pages[2]), hash.link(pages[2], pages[1]));
}

#[test]
fn rows_of_words_add_up_alike_in_one_pass_and_in_one_per_value() {
    fn compare<const N: usize>(roles: [Role; N]) {
        let hash = FactHash::new(Some(6));
        let value = |row: u64, at: usize| spread(row, at as u64) >> (64 - 8 * roles[at].min(8));
        let rows = || (0..50).map(|row| std::array::from_fn(|at| value(row, at)));
        let mut hashes = RowHashes::default();
        hashes.start(&hash, 50);
        for (at, role) in roles.into_iter().enumerate() {
            hashes.add_short(role, (0..50).map(|row| value(row, at)));
        }
        let all = hash.sum_of_words(roles, rows().map(|row| (row, true)));
        assert_eq!(all, (hashes.sum(), 50), "{roles:?}");
        let is_third = || (0..50).map(|row| row % 3 == 0);
        let some = hashes.sum_of(is_third());
        assert_eq!(hash.sum_of_words(roles, rows().zip(is_third())), some, "{roles:?}");
        assert_eq!(hash.sum_of_joined_words(roles, rows().zip(is_third())), some, "{roles:?}");
    }
    compare([4]);
    compare([8, 4]);
    compare([1, 2, 8]);
    compare([3, 5, 6, 7]);
    compare([INNER, INNER, INNER, 4, 8]);
}
