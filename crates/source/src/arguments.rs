//! Paths and other arguments in messages, in the form in which a user types them in a command.

use std::path::{Path, PathBuf};

/// Paths in the form in which a user types them in a command.
pub fn arguments(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| argument(path)).collect::<Vec<_>>().join(" ")
}

/// A path, or another argument, in the form in which a user types it in a command.
pub fn argument(path: &Path) -> String {
    /// Characters that have a meaning for shells. On Windows, the backslash is not special because it separates
    /// folders.
    const SPECIAL: &str = if cfg!(windows) { "\"&|<>()%^;," } else { "'\"$`&|;<>()*?[]{}!#~\\" };
    let text = path.display().to_string();
    let is_plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || SPECIAL.contains(c));
    match is_plain {
        true => text,
        false if cfg!(windows) || !text.contains(['"', '$', '`', '\\', '!']) => format!("\"{text}\""),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
