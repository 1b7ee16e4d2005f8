//! A test server of objects. It supports ranges, tags, and listings in the format of S3. It simulates a latency, a rate
//! per connection, and faults.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Properties of a connection to the server.
#[derive(Clone, Copy, Default)]
pub struct Line {
    /// The time before the first byte of an answer.
    pub latency: Duration,
    /// Bytes per second of each connection; 0 for no limit.
    pub rate: u64,
    /// Number of requests in 100 that are answered with status 503.
    pub busy: u64,
    /// Number of answers in 100 that end in the middle of their body.
    pub cut: u64,
}

/// An object.
#[derive(Clone)]
pub struct Object {
    pub content: Content,
    pub etag: String,
}

/// The content of an object.
#[derive(Clone)]
pub enum Content {
    Bytes(Arc<Vec<u8>>),
    /// Content with this number of bytes. Each byte holds the number of its 4 KB block, modulo 251.
    Pattern(u64),
}

impl Content {
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Pattern(length) => *length,
        }
    }

    pub fn part(&self, range: Range<u64>) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes[range.start as usize..range.end as usize].to_vec(),
            Self::Pattern(_) => {
                let mut part = Vec::with_capacity((range.end - range.start) as usize);
                let mut at = range.start;
                while at < range.end {
                    let next = (at / 4096 * 4096 + 4096).min(range.end);
                    part.resize(part.len() + (next - at) as usize, (at / 4096 % 251) as u8);
                    at = next;
                }
                part
            }
        }
    }
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub range: Option<Range<u64>>,
    pub if_match: Option<String>,
    /// All header lines of the request.
    pub headers: String,
}

#[derive(Default)]
struct State {
    line: Mutex<Line>,
    /// The objects by path; a path starts with a slash.
    objects: Mutex<BTreeMap<String, Object>>,
    /// The text that each query must contain; otherwise, the answer has status 403.
    secret: Mutex<String>,
    requests: Mutex<Vec<Request>>,
    /// The target URL of each redirected path.
    redirects: Mutex<BTreeMap<String, String>>,
    /// Whether the server ignores ranges and sends whole objects.
    sends_whole: Mutex<bool>,
    count: AtomicU64,
    /// A planned replacement of an object: the number of requests until the replacement, the path of the object, and
    /// the new object.
    replacement: Mutex<Option<(usize, String, Object)>>,
    under_way: AtomicU64,
    most_under_way: AtomicU64,
    /// Number of bytes sent in bodies of objects.
    sent: AtomicU64,
}

/// The server, which runs until the process ends.
#[derive(Clone)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let state = Arc::clone(&server.state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                thread::spawn(move || while_open(&connection, &state));
            }
        });
        server
    }

    /// The URL of the server, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set_line(&self, line: Line) {
        *self.state.line.lock().unwrap() = line;
    }

    pub fn require(&self, secret: &str) {
        *self.state.secret.lock().unwrap() = secret.to_owned();
    }

    /// Redirects requests for `path` to the URL `to`.
    pub fn redirect(&self, path: &str, to: &str) {
        self.state.redirects.lock().unwrap().insert(path.to_owned(), to.to_owned());
    }

    pub fn send_whole(&self) {
        *self.state.sends_whole.lock().unwrap() = true;
    }

    /// Stores an object at `/BUCKET/KEY`. If it replaces an object, it gets a new tag.
    pub fn put(&self, path: &str, content: Content) {
        let number = self.state.count.fetch_add(1, Ordering::Relaxed);
        self.put_tagged(path, content, &format!("\"tag-{number}\""));
    }

    pub fn put_tagged(&self, path: &str, content: Content, etag: &str) {
        let object = Object { content, etag: etag.to_owned() };
        self.state.objects.lock().unwrap().insert(path.to_owned(), object);
    }

    /// Replaces an object after `requests` further requests.
    pub fn overwrite_after(&self, requests: usize, path: &str, content: Content) {
        let after = self.requests().len() + requests;
        let object = Object { content, etag: "\"overwritten\"".to_owned() };
        *self.state.replacement.lock().unwrap() = Some((after, path.to_owned(), object));
    }

    pub fn remove(&self, path: &str) {
        self.state.objects.lock().unwrap().remove(path);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.state.requests.lock().unwrap().clear();
        self.state.most_under_way.store(0, Ordering::Relaxed);
        self.state.sent.store(0, Ordering::Relaxed);
    }

    /// Number of bytes sent in bodies of objects since the server started or since the last `forget`.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::Relaxed)
    }

    pub fn most_under_way(&self) -> u64 {
        self.state.most_under_way.load(Ordering::Relaxed)
    }
}

fn while_open(connection: &TcpStream, state: &State) {
    let _ = connection.set_nodelay(true);
    let mut input = BufReader::new(connection);
    while let Some(request) = read(&mut input) {
        let under_way = state.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        state.most_under_way.fetch_max(under_way, Ordering::Relaxed);
        let goes_on = answer(connection, state, &request).is_some();
        state.under_way.fetch_sub(1, Ordering::Relaxed);
        if !goes_on {
            let _ = connection.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read(input: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (mut range, mut if_match, mut headers) = (None, None, String::new());
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        headers.push_str(&header);
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_lowercase().as_str() {
            "range" => {
                let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some(from.parse().ok()?..to.parse::<u64>().ok()? + 1);
            }
            "if-match" => if_match = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), range, if_match, headers })
}

/// Sends the answer to a request; `None` if the connection is to be closed.
fn answer(mut out: &TcpStream, state: &State, request: &Request) -> Option<()> {
    let so_far = {
        let mut requests = state.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len()
    };
    if let Some((_, path, object)) = state.replacement.lock().unwrap().take_if(|(after, ..)| so_far > *after) {
        state.objects.lock().unwrap().insert(path, object);
    }
    let line = *state.line.lock().unwrap();
    thread::sleep(line.latency);
    // Faults occur in a pseudo-random order that is the same in every run.
    let number = state.count.fetch_add(1, Ordering::Relaxed);
    let chance = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let mut send = |status: &str, headers: &str, body: &[u8]| {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
        out.write_all(head.as_bytes()).ok()?;
        // The answer to HEAD must have no body: a body would be read as the next answer on the connection.
        if request.method == "HEAD" {
            return Some(());
        }
        let cut = if chance % 100 < line.cut && length > 1000 { length / 2 } else { length };
        if status.starts_with('2') {
            state.sent.fetch_add(cut as u64, Ordering::Relaxed);
        }
        paced(out, &body[..cut], line.rate)?;
        (cut == length).then_some(())
    };
    let refuse = |code: &str| format!("<Error><Code>{code}</Code><Message>{}</Message></Error>", request.query);
    if (chance >> 8) % 100 < line.busy {
        return send("503 Slow Down", "", refuse("SlowDown").as_bytes());
    }
    if !request.query.contains(state.secret.lock().unwrap().as_str()) {
        return send("403 Forbidden", "", refuse("AuthenticationFailed").as_bytes());
    }
    if let Some(to) = state.redirects.lock().unwrap().get(&request.path) {
        return send("307 Temporary Redirect", &format!("Location: {to}\r\n"), b"");
    }
    if request.query.contains("list-type=2") {
        return send("200 OK", "Content-Type: application/xml\r\n", list(state, request).as_bytes());
    }
    let found = state.objects.lock().unwrap().get(&decoded(&request.path)).cloned();
    let Some(object) = found else { return send("404 Not Found", "", refuse("NoSuchKey").as_bytes()) };
    if request.if_match.as_ref().is_some_and(|tag| *tag != object.etag) {
        return send("412 Precondition Failed", "", refuse("PreconditionFailed").as_bytes());
    }
    let length = object.content.length();
    let headers = format!(
        "ETag: {}\r\nLast-Modified: Mon, 02 Nov 2026 02:00:00 GMT\r\nContent-Type: application/octet-stream\r\n",
        object.etag
    );
    match request.range.clone().filter(|_| !*state.sends_whole.lock().unwrap()) {
        Some(range) if range.start >= length => {
            send("416 Range Not Satisfiable", "", refuse("InvalidRange").as_bytes())
        }
        Some(range) => {
            let range = range.start..range.end.min(length);
            let place = format!("{headers}Content-Range: bytes {}-{}/{length}\r\n", range.start, range.end - 1);
            send("206 Partial Content", &place, &object.content.part(range))
        }
        None => send("200 OK", &headers, &object.content.part(0..length)),
    }
}

/// Writes `body` no faster than the rate of the line.
fn paced(mut out: &TcpStream, body: &[u8], rate: u64) -> Option<()> {
    let start = Instant::now();
    for (number, part) in body.chunks(64 << 10).enumerate() {
        out.write_all(part).ok()?;
        if rate > 0 {
            let due = Duration::from_secs_f64((number * (64 << 10) + part.len()) as f64 / rate as f64);
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    Some(())
}

/// Answers ListObjectsV2 for a bucket.
fn list(state: &State, request: &Request) -> String {
    let parameter = |name: &str| {
        let found = request.query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        decoded(found.map_or("", |(_, value)| value))
    };
    let (prefix, delimiter) = (parameter("prefix"), parameter("delimiter"));
    let bucket = format!("{}/", request.path.trim_end_matches('/'));
    let (mut contents, mut folders) = (String::new(), std::collections::BTreeSet::new());
    for (path, object) in state.objects.lock().unwrap().iter() {
        let Some(key) = path.strip_prefix(&bucket).filter(|key| key.starts_with(&prefix)) else { continue };
        match key[prefix.len()..].split_once('/').filter(|_| !delimiter.is_empty()) {
            Some((folder, _)) => _ = folders.insert(format!("{prefix}{folder}/")),
            None => write!(
                contents,
                "<Contents><Key>{key}</Key><LastModified>2026-11-02T02:00:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size></Contents>",
                object.etag,
                object.content.length()
            )
            .unwrap(),
        }
    }
    let folders: String =
        folders.iter().map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>")).collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{folders}</ListBucketResult>")
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => u8::from_str_radix(std::str::from_utf8(&[*high, *low]).unwrap(), 16).ok(),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap()
}
