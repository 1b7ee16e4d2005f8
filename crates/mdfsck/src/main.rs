//! The command line of mdfsck, which checks whether a SQL Server database is sound.

mod advise;
mod arguments;
mod audit;
mod bench;
mod carved;
mod chain;
mod check;
mod checkpoints;
mod cli;
mod closed;
mod compare;
mod defaults;
#[cfg(feature = "lab")]
mod demo;
mod error_log;
mod event_files;
mod events;
mod explain;
mod export;
mod extract;
mod history;
mod html;
#[cfg(feature = "lab")]
mod lab;
mod log;
mod log_filter;
mod look;
mod lost_catalog;
mod many;
mod matrix;
mod nice;
mod one;
mod output;
mod page;
mod parted;
mod policy;
mod progress;
#[cfg(feature = "lab")]
mod prove;
mod rows;
mod serve;
mod speaker;
mod terminal;
mod urls;
mod values;
mod version;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use jobs::failure::Failure;

use cli::{Cli, Command};
use speaker::warn;
use urls::Shown;

fn main() -> ExitCode {
    jobs::host::set(&speaker::Program);
    survive_size_limits();
    raise_file_limit();
    let Shown { arguments, secrets, has_urls, .. } = match arguments::typed().and_then(urls::shown) {
        Ok(shown) => shown,
        Err(failure) => return ExitCode::from(failure.report()),
    };
    arguments::show(&arguments);
    let arguments = cli::usage::arguments(arguments.into_iter());
    let arguments = match defaults::applied(arguments) {
        Ok(arguments) => arguments,
        Err(failure) => return ExitCode::from(failure.report()),
    };
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &arguments),
    };
    if !defaults::used().is_empty() {
        warn(format!("with {}", defaults::used().join(", ")));
    }
    let is_json = cli.command.prints_json();
    let storage = urls::read(has_urls, secrets, urls::share(cli.command.memory()));
    let status = storage.and_then(|()| run(cli.command));
    match status {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            if is_json {
                print_failure(&failure);
            }
            ExitCode::from(failure.report())
        }
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Check(arguments) => check::run(&(&*arguments).into()),
        Command::Advise(arguments) => self::advise::run(&arguments),
        Command::CompareDbcc(arguments) => compare::run(&arguments),
        Command::Info(arguments) => look::info(&arguments),
        Command::Tables(arguments) => look::tables(&arguments),
        Command::Lint(arguments) => look::lint(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Page(arguments) => page::run(&arguments),
        #[cfg(feature = "lab")]
        Command::Demo { dir } => demo::run(&dir),
        #[cfg(feature = "lab")]
        Command::Lab { command } => self::lab::run(&command),
        #[cfg(feature = "lab")]
        Command::Prove { command } => prove::run(&command),
        Command::Audit(arguments) => self::audit::run(&arguments),
        Command::Log(arguments) => self::log::run(&arguments),
        Command::Checkpoints(arguments) => self::checkpoints::run(&arguments),
        Command::Events(arguments) => self::events::run(&arguments),
        Command::Export(arguments) => self::export::run(&arguments),
        Command::Rows(arguments) => self::rows::run(&arguments),
        Command::History(arguments) => self::history::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Watch(arguments) => self::watch::run(&arguments),
        Command::Plan(arguments) => parted::plan(&arguments),
        Command::Task(arguments) => parted::task(&arguments),
        Command::Merge(arguments) => parted::merge(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Chain(arguments) => chain::run(&arguments),
        Command::Extract(arguments) => extract::run(&arguments),
        Command::Config(arguments) => defaults::run(&arguments),
        Command::Completions { shell } => cli::completions(shell),
        Command::Man { command, markdown } => cli::manual::run(&command, markdown),
    }
}

/// Prevents a limit on the size of files (`ulimit -f`) from ending the process. The kernel sends SIGXFSZ when a write
/// exceeds the limit. If the signal has a handler, the process continues and the write returns an error.
#[cfg(unix)]
fn survive_size_limits() {
    let met = std::sync::Arc::default();
    // If the handler cannot be installed, SIGXFSZ ends the process, which is its default effect.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, met);
}

/// Raises the limit on open files to the maximum that the system allows. A restore keeps all its log backups open at
/// the same time, and the default limit may be too low for them.
#[cfg(unix)]
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, the process continues with the present limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Does nothing, since systems other than Unix have no limit of this kind.
#[cfg(not(unix))]
fn raise_file_limit() {}

/// Does nothing, since systems other than Unix have no signal of this kind.
#[cfg(not(unix))]
fn survive_size_limits() {}

/// Reports an error of the parser clap. The parser also returns requests for help and for the version as errors; they
/// count as success.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
        }
        _ => warn(cli::usage::text(error, arguments)),
    }
    ExitCode::from(Failure::USAGE)
}

/// Prints the failure as a JSON line on stdout, so that callers of a command with JSON output need not read stderr.
/// Nothing else is printed on stdout.
fn print_failure(failure: &Failure) {
    if !failure.text.is_empty() {
        // Ignores an error of the write, since the failure is on stderr too.
        let _ = output::print(|out| report::json::write_failure(&failure.text, failure.status, out));
    }
}
