//! Requests and answers on a connection: the part of HTTP/1.1 that a browser needs, with a limit on everything that is received.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes of a request's head, its most header lines, and the most bytes of its body.
const HEAD_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;
const BODY_BYTES: usize = 8 << 10;
/// Bytes that are read or sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// Time for the client to receive an answer.
const SENDING: Duration = Duration::from_secs(30);
/// Bytes and time granted for what the client still sends on a connection that is being closed.
const REST_BYTES: usize = 256 << 10;
const REST_TIME: Duration = Duration::from_millis(250);

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) host: Option<String>,
    /// The origin, as reported by the browser: `same-origin`, `cross-site`.
    pub(super) fetch_site: Option<String>,
    /// The purpose, as reported by the browser: `navigate` when a user follows a link.
    pub(super) fetch_mode: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether another request may follow on this connection.
    pub(super) may_go_on: bool,
}

impl Request {
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum Refused {
    /// The client is gone.
    Gone,
    /// The client gets this status.
    Answer(u16),
}

/// An answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Arc<Vec<u8>>,
    pub(super) location: Option<String>,
}

impl Answer {
    pub(super) fn html(body: impl Into<Arc<Vec<u8>>>) -> Self {
        Self { status: 200, content_type: "text/html", body: body.into(), location: None }
    }

    /// A status in a few words.
    pub(super) fn refusal(status: u16) -> Self {
        let body = format!("{status} {}\n", words(status)).into_bytes();
        Self { status, content_type: "text/plain", body: body.into(), location: None }
    }
}

/// A status in words.
pub(super) fn words(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

/// A connection, with what was received but not used yet.
pub(super) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// The head of a request, and the lengths of head and body in bytes.
struct Head {
    request: Request,
    head_bytes: usize,
    body_bytes: usize,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// The next request; `None` if none comes within `wait`. Once begun, it must be complete within `patience`.
    pub(super) fn request(&mut self, wait: Option<Duration>, patience: Duration) -> Result<Option<Request>, Refused> {
        if let Some(wait) = wait.filter(|_| self.received.is_empty())
            && !self.receive(Instant::now() + wait).unwrap_or(false)
        {
            return Ok(None);
        }
        let deadline = Instant::now() + patience;
        let slow = |error: Refused, has_begun: bool| match error {
            // A request that never began gets no answer.
            Refused::Answer(408) if !has_begun => Refused::Gone,
            error => error,
        };
        let head = loop {
            if let Some(head) = parse(&self.received).map_err(Refused::Answer)? {
                break head;
            }
            if self.received.len() >= HEAD_BYTES {
                return Err(Refused::Answer(431));
            }
            if !self.receive(deadline).map_err(|error| slow(error, !self.received.is_empty()))? {
                return Err(Refused::Gone);
            }
        };
        let end = head.head_bytes + head.body_bytes;
        while self.received.len() < end {
            if !self.receive(deadline)? {
                return Err(Refused::Gone);
            }
        }
        let rest = self.received.split_off(end);
        let body = self.received.split_off(head.head_bytes);
        self.received = rest;
        Ok(Some(Request { body, ..head.request }))
    }

    /// Receives more; returns whether there was any.
    fn receive(&mut self, deadline: Instant) -> Result<bool, Refused> {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        let left = left.ok_or(Refused::Answer(408))?;
        self.stream.set_read_timeout(Some(left)).map_err(|_| Refused::Gone)?;
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.received.extend_from_slice(piece.get(..read).unwrap_or_default());
                Ok(true)
            }
            Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Refused::Answer(408))
            }
            Err(cause) if cause.kind() == ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(Refused::Gone),
        }
    }

    /// Sends an answer, all of it within a limited time.
    pub(super) fn answer(&mut self, answer: &Answer, goes_on: bool, has_body: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n",
            answer.status,
            words(answer.status),
            answer.content_type,
            answer.body.len(),
        );
        if answer.status == 405 {
            head.push_str("Allow: GET, HEAD, POST\r\n");
        }
        if let Some(location) = &answer.location {
            head.push_str(&format!("Location: {location}\r\n"));
        }
        head.push_str(if goes_on { "Connection: keep-alive\r\n\r\n" } else { "Connection: close\r\n\r\n" });
        let deadline = Instant::now() + SENDING;
        let mut first = head.into_bytes();
        let body = if has_body { answer.body.as_slice() } else { &[] };
        // The start of the body goes with the head.
        let (start, rest) = body.split_at(body.len().min(PIECE_BYTES));
        first.extend_from_slice(start);
        self.send(&first, deadline)?;
        rest.chunks(PIECE_BYTES).try_for_each(|piece| self.send(piece, deadline))
    }

    fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            self.stream.set_write_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Closes the connection. Reads for a moment what the client still sends; otherwise the client might never see the answer.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let deadline = Instant::now() + REST_TIME;
        let mut taken = 0;
        while taken < REST_BYTES && self.receive(deadline).unwrap_or(false) {
            taken += self.received.len();
            self.received.clear();
        }
        Ok(())
    }
}

/// The head at the start of `received`; `None` if it is not complete yet, and the status of the answer if it is not valid.
fn parse(received: &[u8]) -> Result<Option<Head>, u16> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head_bytes = match parsed.parse(received) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(431),
        Err(httparse::Error::Version) => return Err(505),
        Err(_) => return Err(400),
    };
    if head_bytes > HEAD_BYTES {
        return Err(431);
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(400);
    };
    let text = |value: &[u8]| std::str::from_utf8(value).map(|text| text.trim().to_owned()).map_err(|_| 400);
    let one = |name: &str| -> Result<Option<String>, u16> {
        let mut all = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(header), None) => text(header.value).map(Some),
            // A proxy in between may have read the other one.
            (Some(_), Some(_)) => Err(400),
        }
    };
    if one("transfer-encoding")?.is_some() {
        return Err(501);
    }
    let body_bytes = match one("content-length")? {
        None if method == "POST" => return Err(411),
        None => 0,
        Some(length) if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) => return Err(400),
        Some(length) => match length.parse() {
            Ok(bytes) if bytes <= BODY_BYTES => bytes,
            _ => return Err(413),
        },
    };
    let wants_end = one("connection")?.is_some_and(|value| value.to_ascii_lowercase().contains("close"));
    let request = Request {
        method: method.to_owned(),
        target: target.to_owned(),
        host: one("host")?,
        fetch_site: one("sec-fetch-site")?,
        fetch_mode: one("sec-fetch-mode")?,
        body: Vec::new(),
        may_go_on: version == 1 && !wants_end,
    };
    Ok(Some(Head { request, head_bytes, body_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Result<Option<usize>, u16> {
        parse(text.as_bytes()).map(|head| head.map(|head| head.body_bytes))
    }

    #[test]
    fn what_is_not_a_plain_request_has_a_status() {
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(Some(0)));
        assert_eq!(status("POST /acknowledge/1 HTTP/1.1\r\nContent-Length: 7\r\n\r\n"), Ok(Some(7)));
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\n"), Ok(None));
        for (text, expected) in [
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\n\r\n", 411),
            ("PRI * HTTP/2.0\r\n\r\n", 505),
            ("\0\u{1}\u{2}\r\n\r\n", 400),
            ("GET /\u{7f} HTTP/1.1\r\n bad\r\n\r\n", 400),
        ] {
            assert_eq!(status(text), Err(expected), "{text:?}");
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(status(&many), Err(431));
    }
}
