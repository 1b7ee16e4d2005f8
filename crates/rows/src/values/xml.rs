//! Binary XML as text.

use crate::Unreadable;

/// Appends the document; true if something was replaced in it.
pub(super) fn text(bytes: &[u8], into: &mut Vec<u8>) -> Result<bool, Unreadable> {
    let _ = (bytes, into);
    Err(Unreadable::Undocumented)
}
