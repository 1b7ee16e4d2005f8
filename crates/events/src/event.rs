//! An event from any source.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::Moment;

/// An event with its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Name of the event, for example `checkpoint_begin`.
    pub name: Arc<str>,
    /// The package that defines the event, for example `sqlserver`; empty if unknown.
    pub package: Arc<str>,
    /// Time of the event, in UTC; `None` if unknown.
    pub at: Option<Moment>,
    /// Names and values of the event's fields, in order.
    pub fields: Vec<(Arc<str>, Value)>,
    /// Names and values of the actions that the session collected with the event.
    pub actions: Vec<(Arc<str>, Value)>,
}

impl Event {
    /// The value of the field with this name, or else of the action with this name.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.fields.iter().chain(&self.actions).find(|(of, _)| **of == *name).map(|(_, value)| value)
    }

    /// Number of values of the event that could not be decoded.
    pub fn undecoded(&self) -> u64 {
        let values = self.fields.iter().chain(&self.actions);
        values.filter(|(_, value)| matches!(value, Value::Undecoded(_))).count() as u64
    }
}

/// A value of a field or action.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// An integer of at most 32 bits.
    Int(i64),
    /// A signed integer of 64 bits.
    BigInt(i64),
    /// An unsigned integer of 64 bits.
    BigUint(u64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A point in time.
    Time(Moment),
    /// A text, or a value that is shown as text: a GUID, XML, the text to which a map translates a code, a pointer.
    Text(String),
    /// The position of an event in an activity.
    Activity {
        /// The activity's GUID, in the byte order of Windows.
        guid: [u8; 16],
        /// Sequence number of the event in the activity.
        sequence: u32,
    },
    /// Binary data.
    Binary(Vec<u8>),
    /// The bytes of a value that has an unknown type or extends beyond its event.
    Undecoded(Vec<u8>),
}

impl Value {
    /// The value as a non-negative integer; `None` for any other value.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Int(value) | Self::BigInt(value) => u64::try_from(*value).ok(),
            Self::BigUint(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The value as the GUID of an activity and a sequence number. The text form is `GUID-sequence` or `GUID:sequence`.
    pub fn activity(&self) -> Option<([u8; 16], u32)> {
        match self {
            Self::Activity { guid, sequence } => Some((*guid, *sequence)),
            Self::Text(text) => {
                let text = text.trim();
                let (guid, sequence) = text.split_at_checked(36)?;
                let sequence = sequence.strip_prefix(['-', ':', '['])?.trim_end_matches(']');
                Some((guid_of(guid)?, sequence.parse().ok()?))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) | Self::BigInt(value) => value.fmt(out),
            Self::BigUint(value) => value.fmt(out),
            Self::Float(value) => value.fmt(out),
            Self::Boolean(value) => value.fmt(out),
            Self::Time(moment) => out.write_str(&moment.iso(crate::Clock::Utc)),
            Self::Text(text) => out.write_str(text),
            Self::Activity { guid, sequence } => write!(out, "{}-{sequence}", format::types::guid_text(*guid)),
            Self::Binary(bytes) | Self::Undecoded(bytes) => {
                out.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02X}"))
            }
        }
    }
}

/// Parses the text form of a GUID.
fn guid_of(text: &str) -> Option<[u8; 16]> {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = parts.concat();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    if lengths != [8, 4, 4, 4, 12] || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    let [i, j, k, l, m, n, o, p] = rest;
    // The first three groups of a GUID are little-endian.
    Some([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
}

/// Makes names unique by adding a number to repeated names: `a`, `a (2)`.
pub fn unique_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let unique = |name: &str| {
        let mut unique = name.to_owned();
        let mut number = 1u32;
        while !taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{name} ({number})");
        }
        unique
    };
    names.into_iter().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_is_the_same_as_bytes_and_as_text() {
        let activity = Value::Activity { guid: std::array::from_fn(|at| at as u8), sequence: 7 };
        let text = activity.to_string();
        assert_eq!(text, "03020100-0504-0706-0809-0A0B0C0D0E0F-7");
        assert_eq!(Value::Text(text.to_lowercase()).activity(), activity.activity());
        assert_eq!(Value::Text(text.replace("-7", ":7")).activity(), activity.activity());
        for text in ["", "03020100-0504-0706-0809-0A0B0C0D0E0F", "é3020100-0504-0706-0809-0A0B0C0D0E0F-7"] {
            assert_eq!(Value::Text(text.to_owned()).activity(), None, "{text}");
        }
    }

    #[test]
    fn a_field_comes_before_an_action_of_its_name() {
        let named = |value| (Arc::from("database_id"), Value::Int(value));
        let event = Event {
            name: Arc::from("checkpoint_begin"),
            package: Arc::from("sqlserver"),
            at: None,
            fields: vec![named(6)],
            actions: vec![named(1)],
        };
        assert_eq!(event.value("database_id").and_then(Value::number), Some(6));
    }

    #[test]
    fn names_are_unique() {
        assert_eq!(unique_names(["a", "a", "b", "a (2)", "a"]), ["a", "a (2)", "b", "a (2) (2)", "a (3)"]);
    }
}
