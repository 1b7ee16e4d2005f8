//! Random bytes for keys and IDs.

use crate::error::PartsError;

/// Makes random bytes.
///
/// # Errors
/// If the operating system gives no random numbers.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], PartsError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| PartsError::NoRandomNumbers(error.to_string()))?;
    Ok(bytes)
}
