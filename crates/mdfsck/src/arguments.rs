//! The arguments as the user typed them. On Windows, a backslash before a closing quote escapes the quote. For example,
//! `"D:\SQL Data\"` arrives as `D:\SQL Data"`, and all text up to the next quote is appended to this argument.

use std::ffi::OsString;
use std::sync::OnceLock;

use jobs::failure::Failure;

/// The arguments without secrets, for output that repeats the command.
static SHOWN: OnceLock<Vec<OsString>> = OnceLock::new();

/// Stores the arguments for `shown`. The caller has already removed the secrets.
pub(crate) fn show(arguments: &[OsString]) {
    let _ = SHOWN.set(arguments.to_vec());
}

/// The arguments after the program's name, without secrets.
pub(crate) fn shown() -> impl Iterator<Item = OsString> {
    SHOWN.get().map(Vec::as_slice).unwrap_or_default().iter().skip(1).cloned()
}

/// The arguments of this process.
///
/// # Errors
/// If a quote after a backslash has joined two arguments.
pub(crate) fn typed() -> Result<Vec<OsString>, Failure> {
    let arguments = std::env::args_os();
    if cfg!(windows) { arguments.map(mended).collect() } else { Ok(arguments.collect()) }
}

/// If an argument ends with a quote, replaces the quote by the backslash that the user typed before it. No file name on
/// Windows contains a quote.
fn mended(argument: OsString) -> Result<OsString, Failure> {
    let Some((path, rest)) = argument.to_str().and_then(|text| text.split_once('"')) else { return Ok(argument) };
    match rest.chars().next() {
        None => Ok(format!("{path}\\").into()),
        Some(next) if next.is_whitespace() => Err(Failure::usage(format!(
            "{path}\" ...: a backslash before a closing quote joins an argument with the next one; write \"{path}\" instead"
        ))),
        Some(_) => Ok(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_ends_in_a_backslash_may_be_quoted() {
        for (arrived, meant) in [
            (r#"D:\SQL Data""#, r"D:\SQL Data\"),
            (r#"D:""#, r"D:\"),
            (r#"\\server\share""#, r"\\server\share\"),
            ("check", "check"),
            (r#"dbo."Order Details""#, r#"dbo."Order Details""#),
        ] {
            assert_eq!(mended(arrived.into()).ok(), Some(meant.into()), "{arrived}");
        }
        let joined = mended(r#"D:\SQL Data" --physical-only"#.into());
        let text = joined.err().map(|failure| failure.text).unwrap_or_default();
        assert!(text.contains(r#"write "D:\SQL Data" instead"#), "{text}");
    }
}
