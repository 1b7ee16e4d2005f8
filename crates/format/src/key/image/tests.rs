use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{compare, compare_values};
use super::*;

/// An index record with this value in its first column, and a byte in its second column.
fn record(value: &[u8], is_variable: bool, second: u8) -> Vec<u8> {
    match is_variable {
        false => [&[0x06, second][..], value].concat(),
        true => {
            let end = (6 + value.len()) as u16;
            [&[0x26, second, 1, 0][..], &end.to_le_bytes(), value].concat()
        }
    }
}

/// The order of two keys, and the order of their images. The second column matters only if the values of the first
/// column are equal.
fn orders(
    order: KeyOrder,
    length: u16,
    (is_variable, descending): (bool, bool),
    keys: [(&[u8], u8); 2],
) -> [Option<Ordering>; 2] {
    let fixed = if is_variable { 0 } else { length };
    let offset = if is_variable { -1 } else { 2 };
    let columns = [
        KeyColumn { order, offset, length, null_bit: 0, descending },
        KeyColumn { order: KeyOrder::Unsigned, offset: 1, length: 1, null_bit: 0, descending: false },
    ];
    let bytes = keys.map(|(value, second)| record(value, is_variable, second));
    let [a, b] = bytes.each_ref().map(|bytes| Record::index(bytes, 2 + fixed).unwrap());
    let images = [KeyImage::of(&a, &columns), KeyImage::of(&b, &columns)];
    [compare(&a, &b, &columns), images[0].compare(&images[1])]
}

/// Sign bytes with magnitudes, valid and invalid.
fn a_decimal(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let sign = prop_oneof![8 => Just(1), 8 => Just(0), 1 => any::<u8>()];
    let small = any::<u8>().prop_map(move |byte| [&[byte][..], &vec![0; length - 2]].concat());
    let edge = (0..length - 1, any::<u8>()).prop_map(move |(at, byte)| {
        let mut magnitude = vec![0xFF; at];
        magnitude.resize(length - 1, 0);
        magnitude[at] = byte;
        magnitude
    });
    let magnitude = prop_oneof![small, edge, vec(any::<u8>(), length - 1)];
    (sign, magnitude).prop_map(|(sign, magnitude)| [&[sign][..], &magnitude].concat())
}

/// Numbers of all kinds, including zeros, denormals, infinities and NaN.
fn a_float(is_real: bool) -> BoxedStrategy<Vec<u8>> {
    match is_real {
        true => prop_oneof![any::<u32>(), (-3i32..3).prop_map(|n| (n as f32).to_bits()), edges::<u32>(31, 23)]
            .prop_map(|bits| bits.to_le_bytes().to_vec())
            .boxed(),
        false => prop_oneof![any::<u64>(), (-3i32..3).prop_map(|n| f64::from(n).to_bits()), edges::<u64>(63, 52)]
            .prop_map(|bits| bits.to_le_bytes().to_vec())
            .boxed(),
    }
}

/// Bit patterns of floating-point numbers. Each pattern differs by at most one from the pattern of zero, of the
/// smallest normal number or of infinity, or from the largest pattern, which is a NaN.
fn edges<T: TryFrom<u64, Error: std::fmt::Debug> + std::fmt::Debug>(
    sign: u32,
    fraction: u32,
) -> impl Strategy<Value = T> {
    let least =
        prop_oneof![Just(0), Just(1u64 << fraction), Just((1 << sign) - (1 << fraction)), Just((1 << sign) - 1)];
    (least, 0u64..3, any::<bool>()).prop_map(move |(least, more, is_negative)| {
        let bits = least.saturating_sub(1).saturating_add(more) & ((1 << sign) - 1);
        T::try_from(bits | u64::from(is_negative) << sign).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn images_of_decimals_decide_as_they_do(
        (length, a, b) in prop::sample::select(vec![5usize, 9, 13, 17])
            .prop_flat_map(|length| (Just(length), a_decimal(length), a_decimal(length))),
        descending: bool,
        seconds: [u8; 2],
    ) {
        let keys = [(&a[..], seconds[0]), (&b[..], seconds[1])];
        let [exact, image] = orders(KeyOrder::Decimal, length as u16, (false, descending), keys);
        prop_assert!(image.is_none() || image == exact, "{exact:?} {image:?}");
        if compare_values(&a, &b, KeyOrder::Decimal).is_some_and(Ordering::is_ne) {
            prop_assert_eq!(image, exact);
        }
    }

    #[test]
    fn images_of_floats_decide_as_they_do(
        (length, a, b) in any::<bool>()
            .prop_flat_map(|is_real| (Just(if is_real { 4 } else { 8 }), a_float(is_real), a_float(is_real))),
        descending: bool,
        seconds: [u8; 2],
    ) {
        let keys = [(&a[..], seconds[0]), (&b[..], seconds[1])];
        let [exact, image] = orders(KeyOrder::Float, length, (false, descending), keys);
        prop_assert!(image.is_none() || image == exact, "{exact:?} {image:?}");
        if compare_values(&a, &b, KeyOrder::Float).is_some_and(Ordering::is_ne) {
            prop_assert_eq!(image, exact);
        }
    }

    /// Tests random byte strings that share prefixes and contain many zeros. Some are longer than their column, some
    /// longer than an image.
    #[test]
    fn images_of_bytes_decide_as_they_do(
        shared in vec(0u8..3, 0..26),
        rest in [vec(0u8..3, 0..5), vec(0u8..3, 0..5)],
        length in 1u16..32,
        is_variable: bool,
        descending: bool,
        seconds: [u8; 2],
    ) {
        let [a, b] = rest.map(|rest| {
            let mut value = [&shared[..], &rest].concat();
            if !is_variable {
                value.resize(length.into(), 0);
            }
            value
        });
        let keys = [(&a[..], seconds[0]), (&b[..], seconds[1])];
        let [exact, image] = orders(KeyOrder::Bytes, length, (is_variable, descending), keys);
        prop_assert!(image.is_none() || image == exact, "{exact:?} {image:?}");
        let fits = usize::from(length) < IMAGE_BYTES && a.len().max(b.len()) <= length.into();
        if fits && compare_values(&a, &b, KeyOrder::Bytes).is_some_and(Ordering::is_ne) {
            prop_assert_eq!(image, exact);
        }
    }
}

#[test]
fn what_has_several_forms_ends_an_image() {
    let pairs: [(KeyOrder, &[u8], &[u8]); 3] = [
        (KeyOrder::Float, &(-0f64).to_le_bytes(), &0f64.to_le_bytes()),
        (KeyOrder::Decimal, &[0, 0, 0, 0, 0], &[1, 0, 0, 0, 0]),
        (KeyOrder::Decimal, &[7, 9, 0, 0, 0], &[1, 9, 0, 0, 0]),
    ];
    for (order, odd, usual) in pairs {
        let length = odd.len() as u16;
        let of = |a, b| orders(order, length, (false, false), [(a, 1), (b, 1)]);
        assert_eq!(of(odd, usual), [None, None], "{order:?} {odd:?}");
        assert_eq!(of(usual, usual), [Some(Ordering::Equal); 2], "{order:?} {usual:?}");
    }
    let of = |a, b| orders(KeyOrder::Bytes, 2, (true, false), [(a, 1), (b, 1)]);
    assert_eq!(of(&[1], &[1, 0]), [None, None]);
    assert_eq!(of(&[1], &[1]), [Some(Ordering::Equal); 2]);
    assert_eq!(of(&[], &[0]), [None, None]);
}
