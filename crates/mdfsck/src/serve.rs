//! `mdfsck serve`: shows the pages of a history in a browser.
//!
//! The server never changes the history, except to record acknowledgements. It has a fixed number of threads. Each
//! thread handles one connection at a time, for a limited time, and the operating system queues further connections. No
//! text of a request ever becomes a path: a request contains only numbers, and the history maps these numbers to files.

mod gate;
mod http;
mod page_view;
mod site;
mod token;

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use jobs::failure::Failure;
use jobs::keep;

use crate::cli::ServeArguments;
use crate::speaker::warn;
use gate::Gate;
use http::{Answer, Connection, Refused};
use site::Site;
use token::Token;

/// Maximum number of connections that are handled at the same time.
const THREADS: usize = 32;
/// Size of a thread's stack, in bytes.
const STACK_BYTES: usize = 1 << 20;
/// The time that the server waits for the next request on a connection.
const IDLE: Duration = Duration::from_secs(3);
/// The time limit for receiving a request. While more than half of the threads are busy, the limit `LITTLE_PATIENCE`
/// applies instead.
const PATIENCE: Duration = Duration::from_secs(10);
const LITTLE_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &ServeArguments) -> Result<u8, Failure> {
    let ip = arguments.listen.ip();
    if !ip.is_loopback() && !arguments.allow_remote {
        return Err(Failure::usage(format!(
            "--listen {}: other machines can reach this address; add --allow-remote, or listen on 127.0.0.1",
            arguments.listen
        )));
    }
    let token = match (arguments.allow_ack, &arguments.token_file) {
        (false, _) => None,
        (true, None) => Some(Token::random()?),
        (true, Some(path)) => Some(Token::read(path)?),
    };
    let site = Site::open(&arguments.history, token.clone())?;
    let listener = TcpListener::bind(arguments.listen).map_err(|cause| {
        Failure::unable(format!("--listen {}: mdfsck cannot listen on this address: {cause}", arguments.listen))
    })?;
    let address = listener.local_addr().unwrap_or(arguments.listen);
    if !ip.is_loopback() {
        let who = if arguments.no_token { "" } else { ", with the token" };
        warn(format!(
            "{address}: other machines can read all pages of this history{who}, and connections are not encrypted"
        ));
    }
    let gate = Gate::new(arguments.no_token, address)?;
    say(&gate.address(address), token.filter(|_| arguments.token_file.is_none()))?;
    let server = Server { listener, site, gate, hosts: Hosts::of(ip, &arguments.name), open: AtomicUsize::new(0) };
    let server = &server;
    // If the system grants fewer threads, the server handles fewer connections at a time.
    let started = thread::scope(|scope| {
        let start = || thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || server.work());
        (0..THREADS).filter(|_| start().is_ok()).count()
    });
    match started {
        0 => Err(Failure::unable(
            "the system cannot start a thread for requests; end other programs, or allow more threads",
        )),
        _ => Ok(0),
    }
}

fn say(address: &str, token: Option<Token>) -> Result<(), Failure> {
    let mut text = format!("{address}\n");
    if let Some(token) = token {
        text.push_str(&format!("token to acknowledge findings: {}\n", token.text()));
    }
    crate::output::print(|out| out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The host names that this server accepts in requests. A request with any other host name may come from a foreign
/// website whose host name was made to resolve to the address of this server.
struct Hosts {
    is_loopback: bool,
    names: Vec<String>,
}

impl Hosts {
    fn of(ip: IpAddr, allowed: &[String]) -> Self {
        let is_loopback = ip.is_loopback();
        let mut names = allowed.to_vec();
        names.push("localhost".to_owned());
        if !is_loopback {
            names.push(keep::host());
        }
        Self { is_loopback, names }
    }

    /// Whether to answer requests for `host`, which may include a port. An IP address is safe, since a website can only
    /// change the address of its own host name.
    fn has(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        match name.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || !self.is_loopback,
            Err(_) => self.names.iter().any(|known| name.eq_ignore_ascii_case(known)),
        }
    }
}

struct Server {
    listener: TcpListener,
    site: Site,
    gate: Gate,
    hosts: Hosts,
    /// The number of open connections.
    open: AtomicUsize,
}

/// An open connection. Dropping it lowers the count of open connections.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// Accepts and handles one connection after another, without end.
    fn work(&self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let _open = Open::new(&self.open);
                    // An error is ignored: the client has disconnected or was too slow.
                    let _ = self.serve(stream);
                }
                // Accepting a connection failed, for example because the process has too many open files.
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut connection = Connection::new(stream)?;
        let mut wait = None;
        loop {
            let is_busy = self.open.load(Ordering::Relaxed) > THREADS / 2;
            let patience = if is_busy { LITTLE_PATIENCE } else { PATIENCE };
            let request = match connection.request(wait, patience) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(Refused::Gone) => return Ok(()),
                Err(Refused::Answer(status)) => {
                    connection.answer(&Answer::refusal(status), false, true)?;
                    return connection.end();
                }
            };
            let answer = match &request.host {
                Some(host) if self.hosts.has(host) => {
                    self.gate.refusal(&request).unwrap_or_else(|| self.site.answer(&request))
                }
                Some(_) => Answer::refusal(403),
                None => Answer::refusal(400),
            };
            let goes_on = request.may_go_on && !is_busy;
            connection.answer(&answer, goes_on, !request.is_head())?;
            if !goes_on {
                return connection.end();
            }
            wait = Some(IDLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_made_to_lead_here_is_refused() {
        let loopback = Hosts::of(IpAddr::from([127, 0, 0, 1]), &["checks.example".to_owned()]);
        for good in
            ["127.0.0.1", "127.0.0.1:8898", "localhost:1", "LocalHost", "[::1]:8898", "[::1]", "Checks.example:8898"]
        {
            assert!(loopback.has(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8898",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "",
            "10.0.0.1",
            "db1",
            "::1:1",
        ] {
            assert!(!loopback.has(bad), "{bad}");
        }
        let open = Hosts { is_loopback: false, names: vec!["db1".to_owned(), "localhost".to_owned()] };
        assert!(open.has("10.0.0.1:80") && open.has("DB1:80") && open.has("localhost") && !open.has("evil.example"));
    }
}
