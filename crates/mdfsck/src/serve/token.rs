//! The token that a user needs to acknowledge findings or to read pages.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use jobs::failure::Failure;

/// Minimum number of characters of a token. `MOST_BYTES` is the maximum size of the file with the token, in bytes.
const LEAST_CHARS: usize = 16;
const MOST_BYTES: u64 = 4096;

#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// Makes a random token.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn random() -> Result<Self, Failure> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|cause| Failure::unable(format!("no token could be created: {cause}; use --token-file")))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or the token is too short or has several lines.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        read.map_err(|cause| Failure::unable(format!("--token-file {}: cannot be read: {cause}", path.display())))?;
        let token = text.trim();
        if token.chars().count() < LEAST_CHARS || token.lines().count() > 1 {
            let text =
                format!("--token-file {}: must contain one line of at least {LEAST_CHARS} characters", path.display());
            return Err(Failure::usage(text));
        }
        Ok(Self(token.to_owned()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether `other` equals the token. The time that the comparison takes does not depend on how many characters are
    /// equal.
    pub(super) fn is(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let mut difference = u8::from(own.len() != other.len());
        for (at, byte) in own.iter().enumerate() {
            difference |= byte ^ black_box(other.get(at).copied().unwrap_or_default());
        }
        black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token::random().unwrap();
        assert_eq!(token.text().len(), 32);
        assert!(token.is(token.text()));
        let other = Token::random().unwrap();
        for wrong in ["", &token.text()[..31], &format!("{}0", token.text()), other.text()] {
            assert!(!token.is(wrong), "{wrong}");
        }
    }
}
