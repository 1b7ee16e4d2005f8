//! Exact numbers.

use format::bytes::unsigned;
use format::compressed::vardecimal::{self, VardecimalFault};
use format::types::{TypeInfo, power_of_ten};

use crate::{Unreadable, Value};

/// The bytes as an array; `None` if their number is not the length of the type.
#[inline]
pub(super) fn exact<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Converts money or smallmoney, which is stored in units of 1/10,000.
#[inline]
pub(super) fn money(units: i64) -> Value<'static> {
    Value::Decimal { unscaled: units.into(), scale: 4 }
}

/// Reads a decimal: a sign byte (1 = plus), then a magnitude of up to 16 bytes, low byte first. Values in sql_variant
/// and in XML indexes may omit high bytes that are zero. `None` if the value is not valid for its precision.
#[inline]
pub(super) fn decimal(bytes: &[u8], info: TypeInfo) -> Option<i128> {
    let (&sign, magnitude) = bytes.split_first()?;
    let magnitude = match magnitude.split_first_chunk::<8>() {
        None => unsigned(magnitude).into(),
        Some((low, [])) => u64::from_le_bytes(*low).into(),
        Some((low, high)) if high.len() <= 8 => u128::from(u64::from_le_bytes(*low)) | u128::from(unsigned(high)) << 64,
        Some(_) => return None,
    };
    if sign > 1 || magnitude >= power_of_ten(info.precision)? {
        return None;
    }
    // The magnitude is below 10^38, so the cast to a signed type is safe.
    let magnitude = magnitude as i128;
    Some(if sign == 0 { -magnitude } else { magnitude })
}

/// Reads a decimal that is stored in variable length (docs/format/compression.md#decimals).
pub(super) fn vardecimal(bytes: &[u8], info: TypeInfo) -> Result<i128, Unreadable> {
    match vardecimal::decode(bytes, info).map(vardecimal::Scaled::signed) {
        Ok(Some(unscaled)) => Ok(unscaled),
        Ok(None) | Err(VardecimalFault::OutOfDomain) => Err(Unreadable::Impossible),
        Err(_) => Err(Unreadable::Undocumented),
    }
}
