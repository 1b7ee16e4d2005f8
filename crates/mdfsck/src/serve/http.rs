//! Reads requests and writes answers, with a time limit for each.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use requests::{HEAD_BYTES, Request, parse};

/// Maximum number of bytes to read or send at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The time limit for sending an answer.
const SENDING: Duration = Duration::from_secs(30);
/// While a connection is being closed, the server still reads what the client sends. `REST_BYTES` limits the number of
/// bytes and `REST_TIME` the time for this.
const REST_BYTES: usize = 256 << 10;
const REST_TIME: Duration = Duration::from_millis(250);

/// The reason why no request could be read.
#[derive(Debug)]
pub(super) enum Refused {
    /// The client has disconnected.
    Gone,
    /// The request is invalid; the server answers with this status.
    Answer(u16),
}

/// An answer to an HTTP request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Arc<Vec<u8>>,
    pub(super) location: Option<String>,
    /// A cookie that the browser will send with later requests.
    pub(super) cookie: Option<String>,
}

impl Answer {
    pub(super) fn html(body: impl Into<Arc<Vec<u8>>>) -> Self {
        Self { status: 200, content_type: "text/html", body: body.into(), location: None, cookie: None }
    }

    /// An answer with a status. Its text is the phrase that HTTP defines for the status.
    pub(super) fn refusal(status: u16) -> Self {
        Self::text(status, &format!("{status} {}\n", words(status)))
    }

    /// An answer with a status and a text.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self { status, content_type: "text/plain", ..Self::html(text.as_bytes().to_vec()) }
    }
}

/// The phrase that HTTP defines for a status.
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

/// A connection, with received bytes that are not parsed yet.
pub(super) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Reads the next request. Returns `None` if the client sends no part of a request within `wait`. Once the first
    /// part has arrived, the whole request must arrive within `patience`.
    pub(super) fn request(&mut self, wait: Option<Duration>, patience: Duration) -> Result<Option<Request>, Refused> {
        if let Some(wait) = wait.filter(|_| self.received.is_empty())
            && !self.receive(Instant::now() + wait).unwrap_or(false)
        {
            return Ok(None);
        }
        let deadline = Instant::now() + patience;
        let slow = |error: Refused, has_begun: bool| match error {
            // If no request has begun, the client gets no answer.
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

    /// Receives more bytes. Returns whether the client has sent any bytes.
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

    /// Sends an answer within the time limit. If `goes_on`, the connection stays open for another request.
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
        if let Some(cookie) = &answer.cookie {
            head.push_str(&format!("Set-Cookie: {cookie}; Path=/; HttpOnly; SameSite=Lax\r\n"));
        }
        head.push_str(if goes_on { "Connection: keep-alive\r\n\r\n" } else { "Connection: close\r\n\r\n" });
        let deadline = Instant::now() + SENDING;
        let mut first = head.into_bytes();
        let body = if has_body { answer.body.as_slice() } else { &[] };
        // Sends the head and the start of the body together.
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

    /// Closes the connection. Before that, reads for a short time what the client still sends. Otherwise the client
    /// might not receive the answer.
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
