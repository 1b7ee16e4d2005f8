//! `--until-eof`: ends a task when the process that started it has ended. The starting process connects the task's
//! standard input to a pipe and keeps the write end of the pipe open. When the starting process ends for any reason,
//! the operating system closes the write end, and the task reads the end of its standard input.

use std::io::{self, Read};
use std::thread;

use jobs::failure::Failure;

use crate::speaker::warn;

/// Ends this process at the end of its standard input.
pub(super) fn watch() {
    let wait = || {
        let mut piece = [0; 4096];
        let mut input = io::stdin().lock();
        loop {
            match input.read(&mut piece) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        warn("standard input has ended, so this process ends too (--until-eof)");
        std::process::exit(Failure::UNABLE.into());
    };
    if let Err(error) = thread::Builder::new().name("until-eof".to_owned()).spawn(wait) {
        warn(format!("--until-eof: standard input cannot be watched: {error}"));
    }
}
