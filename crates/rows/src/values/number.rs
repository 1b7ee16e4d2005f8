//! Exact numbers.

use format::compressed::vardecimal::{self, VardecimalFault};
use format::types::TypeInfo;

use crate::{Unreadable, Value};

/// The bytes, if there are as many as the type has.
#[inline]
pub(super) fn exact<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Money is stored in units of 1/10,000.
#[inline]
pub(super) fn money(units: i64) -> Value<'static> {
    Value::Decimal { unscaled: units.into(), scale: 4 }
}

/// A sign byte (1 = plus) and a magnitude of up to 16 bytes, low bytes first. Values of sql_variant and of XML indexes may
/// leave out high bytes.
#[inline]
pub(super) fn decimal(bytes: &[u8], info: TypeInfo) -> Option<Value<'static>> {
    let (&sign, magnitude) = bytes.split_first()?;
    let mut whole = [0; 16];
    whole.get_mut(..magnitude.len())?.copy_from_slice(magnitude);
    let magnitude = i128::try_from(u128::from_le_bytes(whole)).ok()?;
    if sign > 1 || magnitude >= 10_i128.checked_pow(info.precision.into())? {
        return None;
    }
    Some(Value::Decimal { unscaled: if sign == 0 { -magnitude } else { magnitude }, scale: info.scale })
}

/// A decimal in variable length (docs/format/compression.md#decimals).
pub(super) fn vardecimal(bytes: &[u8], info: TypeInfo) -> Value<'static> {
    match vardecimal::decode(bytes, info).map(vardecimal::Scaled::signed) {
        Ok(Some(unscaled)) => Value::Decimal { unscaled, scale: info.scale },
        Ok(None) | Err(VardecimalFault::OutOfDomain) => Value::Unreadable(Unreadable::Impossible),
        Err(_) => Value::Unreadable(Unreadable::Undocumented),
    }
}
