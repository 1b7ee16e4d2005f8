//! `--until-eof`: a task ends when the process that started it has ended. The process that starts a task with a pipe as its
//! standard input holds the other end, and the system closes that when the process ends, in whatever way; nothing needs to watch
//! the process.

use std::io::{self, Read};
use std::thread;

use crate::failure::{Failure, warn};

/// Ends this process when its standard input ends.
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
        warn("standard input has ended, and so does this task (--until-eof)");
        std::process::exit(Failure::UNABLE.into());
    };
    if let Err(error) = thread::Builder::new().name("until-eof".to_owned()).spawn(wait) {
        warn(format!("--until-eof: standard input cannot be watched: {error}"));
    }
}
