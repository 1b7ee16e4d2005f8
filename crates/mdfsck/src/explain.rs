//! `mdfsck explain`: explains checks, messages and limits, and a pasted text with messages.

use std::io;

use jobs::failure::Failure;
use report::directory::{self, Entries};
use report::pasted::Pasted;

use crate::cli::ExplainArguments;
use crate::output;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<u8, Failure> {
    if arguments.all {
        output::print(|out| match (arguments.markdown, arguments.limits) {
            (true, false) if arguments.messages => out.write_all(report::server_messages::markdown().as_bytes()),
            (true, false) if arguments.parity => out.write_all(report::parity::markdown().as_bytes()),
            (true, false) => out.write_all(report::explain::markdown().as_bytes()),
            (true, true) => out.write_all(report::limits::markdown().as_bytes()),
            (false, true) => report::limits::write_index(out),
            (false, false) => {
                report::explain::write_index(out)?;
                writeln!(out)?;
                report::limits::write_index(out)
            }
        })?;
        return Ok(0);
    }
    if arguments.keys.is_empty() {
        output::print(|out| match arguments.json {
            true => directory::write_list_json(out),
            false => directory::write_list(out),
        })?;
        return Ok(0);
    }
    if arguments.keys.iter().any(|key| key == PASTED) {
        return pasted(arguments);
    }
    let mut entries = Entries::default();
    for key in keys(&arguments.keys) {
        let found = Entries::find(&key);
        if found.is_empty() {
            return Err(unknown(&key));
        }
        entries.extend(found);
    }
    output::print(|out| match arguments.json {
        true => entries.write_json(out),
        false => entries.write(out),
    })?;
    Ok(0)
}

/// The key that stands for a text on standard input.
const PASTED: &str = "-";

/// Explains an error log or output of DBCC on standard input.
fn pasted(arguments: &ExplainArguments) -> Result<u8, Failure> {
    if arguments.keys.len() > 1 {
        return Err(Failure::usage("-: reads the messages from standard input; give no other number or ID"));
    }
    let pasted = Pasted::read(io::stdin().lock())
        .map_err(|cause| Failure::unable(format!("standard input: cannot be read: {cause}")))?;
    if pasted.is_empty() {
        return Err(nothing_recognized(&pasted));
    }
    output::print(|out| match arguments.json {
        true => pasted.write_json(out),
        false => pasted.write(out),
    })?;
    Ok(0)
}

fn nothing_recognized(pasted: &Pasted) -> Failure {
    let unknown: Vec<String> = pasted.unknown().map(|number| number.to_string()).collect();
    let found = match unknown.is_empty() {
        true => "no message of SQL Server was recognized".to_owned(),
        false => format!("no explanation for message {}", unknown.join(", ")),
    };
    Failure::usage(format!(
        "standard input: {found}; paste lines such as 'Error: 824, Severity: 24, State: 2.' or 'Msg 8976, Level 16, State 1'"
    ))
}

/// Splits the words into keys. A pasted `Msg 8976, Level 16, State 1` is one key even without quotes.
fn keys(words: &[String]) -> Vec<String> {
    let is_pasted = words.first().is_some_and(|first| {
        let first = first.trim_end_matches(':');
        first.eq_ignore_ascii_case("msg") || first.eq_ignore_ascii_case("error")
    });
    if is_pasted { vec![words.join(" ")] } else { words.to_vec() }
}

fn unknown(key: &str) -> Failure {
    let near = directory::near(key);
    let offer = match near.split_last() {
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
        None => ";".to_owned(),
    };
    Failure::usage(format!("{key}: no check, message or limit has this number or ID{offer} 'mdfsck explain' lists all"))
}
