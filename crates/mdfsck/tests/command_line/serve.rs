//! `mdfsck serve`: shows the pages of a history in a browser. The server must refuse all other requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::browser::{Browser, Session};
use super::estate::{change, history, hostile_name};
use super::*;

pub(super) fn with_servers() -> Vec<(&'static str, Test)> {
    vec![
        ("serve shows estate, database, run and page, each with a strict policy", pages),
        ("serve refuses names that lead elsewhere, other methods, and whatever is not there", refusals),
        ("serve survives 500 kinds of requests that are none, and gives no file away", hostile_requests),
        ("serve answers while slow clients hold more connections than it takes", slow_clients),
        ("a server shows its pages only to those who have the token of its address", token),
        ("a finding is acknowledged with the token only, and only where that is allowed", acknowledgement),
        ("serve shows a page of a database file only, whatever the history names", other_files),
        ("serve shows at once what changes: a check under way, its end, another file", changes),
        ("serve shows how far a check is, with curves and a map, and that it was killed", under_way),
        ("a history that is locked or goes wrong during a check costs it nothing but a line", notes_that_fail),
        ("serve says in one line why it cannot start", starts),
    ]
}

/// Tests that need a browser.
pub(super) fn in_a_browser() -> Vec<Trial> {
    let name = "a browser clicks from the estate of a server to the bytes of a damaged page, at 400 pixels and on a dark screen";
    vec![needs(&[("chromium", Browser::find().is_some())], name, clicks)]
}

pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
    /// The token that allows reading.
    cookie: Option<String>,
    /// The token that allows acknowledging findings.
    token: Option<String>,
}

impl Server {
    pub(super) fn start(folder: &Path, options: &[&str]) -> Result<Self, Failed> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
            .args(["serve", "--history", "h.db", "--listen", "127.0.0.1:0"])
            .args(options)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let address = lines.next().ok_or("no address")??;
        let (start, cookie) =
            address.split_once("?token=").map_or((address.as_str(), None), |(start, token)| (start, Some(token)));
        let cookie = cookie.map(str::to_owned);
        let port = start.trim_end_matches('/').rsplit_once(':').ok_or("no port")?.1.parse()?;
        let is_random = options == ["--allow-ack"];
        let token = if is_random { lines.next().transpose()? } else { None };
        let token = token.and_then(|line| Some(line.strip_prefix("token to acknowledge findings: ")?.to_owned()));
        Ok(Self { child, port, cookie, token })
    }

    /// The URL of a path, with the token that allows reading, for use in a browser.
    pub(super) fn url(&self, path: &str) -> String {
        let token = self.cookie.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
        format!("http://127.0.0.1:{}{path}{token}", self.port)
    }

    fn connect(&self) -> Result<TcpStream, Failed> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(stream)
    }

    /// Sends bytes and returns the answer. The answer is empty if the server closes the connection without an answer.
    fn raw(&self, request: &[u8]) -> Result<Vec<u8>, Failed> {
        let mut stream = self.connect()?;
        // The server may refuse the request before it has received all of it.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Ok(answer)
    }

    fn ask(&self, method: &str, target: &str, headers: &str, body: &str) -> Result<(u16, String, String), Failed> {
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{}\r\n", self.port) };
        let length = if method == "POST" { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
        let cookie = match &self.cookie {
            Some(token) if !headers.contains("Cookie:") => format!("Cookie: mdfsck_{}={token}\r\n", self.port),
            _ => String::new(),
        };
        let request =
            format!("{method} {target} HTTP/1.1\r\n{host}{cookie}{headers}{length}Connection: close\r\n\r\n{body}");
        let answer = text(&self.raw(request.as_bytes())?);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok((status, head.to_owned(), body.to_owned()))
    }

    fn get(&self, target: &str) -> Result<(u16, String), Failed> {
        self.ask("GET", target, "", "").map(|(status, _, body)| (status, body))
    }

    pub(super) fn model(&self, target: &str) -> Result<Value, Failed> {
        super::html::data(&self.get(target)?.1)
    }

    /// Requires that the server answers. A busy server has little patience with a client that a busy machine delays, so
    /// a client may ask several times.
    fn lives(&mut self) -> Result<(), Failed> {
        const TIMES: usize = 5;
        let is_answered = |_| self.get("/").is_ok_and(|(status, _)| status == 200);
        ensure((0..TIMES).any(is_answered), "the estate")?;
        ensure(self.child.try_wait()?.is_none(), "it has ended")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every user of the machine can connect to the port. The server prints an address with a token, and must refuse all
/// requests without this token.
fn token(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let server = Server::start(folder, &[])?;
    let token = server.cookie.clone().ok_or("no token in the address")?;
    for target in
        ["/", "/style.css", "/script.js", "/database/1", "/run/1", "/page/1", "/nothing", "/?token=", "/?token=0"]
    {
        for cookie in ["Cookie: a=b\r\n".to_owned(), format!("Cookie: mdfsck_{}={}\r\n", server.port, &token[1..])] {
            let (status, head, body) = server.ask("GET", target, &cookie, "")?;
            ensure(
                status == 403 && !head.contains(&token) && body.contains("mdfsck serve"),
                format!("{target}: {head}{body}"),
            )?;
        }
    }
    ensure(server.ask("POST", "/acknowledge/1", "Cookie: a=b\r\n", "token=x&because=y")?.0 == 403, "POST")?;
    let (status, head, _) = server.ask("GET", &format!("/database/1?token={token}"), "Cookie: a=b\r\n", "")?;
    let wanted = format!("Set-Cookie: mdfsck_{}={token}; Path=/; HttpOnly; SameSite=Lax", server.port);
    ensure(status == 303 && head.contains(&wanted) && head.contains("Location: /database/1\r\n"), head)?;
    ensure(server.get("/database/1")?.0 == 200, "with the cookie")?;
    let other = Server::start(folder, &[])?;
    ensure(other.cookie.as_ref().is_some_and(|other| *other != token), "each start has its own")?;
    let open = Server::start(folder, &["--no-token"])?;
    ensure(open.cookie.is_none() && open.get("/page/1")?.0 == 200, "--no-token")
}

fn pages(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let server = Server::start(folder, &[])?;
    let estate = server.model("/")?;
    let worst = &estate["estate"]["rows"][0];
    ensure(worst["state"] == "corrupt" && estate["head"]["is_live"] == true, worst.to_string())?;
    let database = server.model(&format!("/database/{}", worst["id"]))?;
    let finding = &database["database"]["findings"]["shown"][0];
    let run = database["database"]["runs"][1]["id"].as_u64().ok_or("no run")?;
    let run = server.model(&format!("/run/{run}"))?;
    ensure(run["run"]["came"]["count"] == database["database"]["findings"]["count"], run.to_string())?;
    let (status, page) = server.get(&format!("/page/{}", finding["key"]))?;
    ensure(status == 200 && page.contains("m_headerVersion") && page.contains("hurt/orders.mdf"), page.clone())?;
    let printed = mdfsck(folder, &["page", &format!("{}:{}", finding["file"], finding["page"]), "hurt"]);
    let line = text(&printed.stdout).lines().next().unwrap_or_default().to_owned();
    ensure(line.starts_with("Page (") && page.contains(&line), line)?;
    for target in ["/", "/style.css", "/script.js", "/database/1", "/run/1", "/page/1", "/nothing"] {
        let (status, head, body) = server.ask("GET", target, "", "")?;
        for wanted in [
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'",
            "X-Content-Type-Options: nosniff",
            "Cache-Control: no-store",
        ] {
            ensure(head.contains(wanted), format!("{target}: {head}"))?;
        }
        ensure(
            !head.to_ascii_lowercase().contains("\nserver:") && (status == 404) == (target == "/nothing"),
            head.clone(),
        )?;
        ensure(head.contains(&format!("Content-Length: {}", body.len())), head.clone())?;
        let (_, other, nothing) = server.ask("HEAD", target, "", "")?;
        ensure(nothing.is_empty() && other.lines().count() == head.lines().count(), other)?;
    }
    Ok(())
}

fn refusals(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let mut server = Server::start(folder, &[])?;
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""] {
        let (status, _, body) = server.ask("GET", "/", &format!("Host: {host}\r\n"), "")?;
        ensure(matches!(status, 400 | 403) && !body.contains("orders"), format!("{host}: {status}"))?;
    }
    ensure(server.ask("GET", "/", "Host: localhost:80\r\n", "")?.0 == 200, "localhost")?;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"] {
        ensure(server.ask(method, "/", "", "")?.0 == 405, method)?;
    }
    for target in [
        "/database/999",
        "/run/999",
        "/page/999",
        "/acknowledge/1",
        "/h.db",
        "/../h.db",
        "/page/..%2fh.db",
        "/page/1/../2",
    ] {
        let (status, body) = server.get(target)?;
        ensure(matches!(status, 404 | 405) && !body.contains("SQLite"), format!("{target}: {status}"))?;
    }
    // A page of another site may contain a link to a page of the server. If it embeds a page of the server instead, the
    // server must not start a process on this machine.
    ensure(
        server.ask("GET", "/page/1", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "")?.0 == 403,
        "a picture",
    )?;
    ensure(
        server.ask("GET", "/page/1", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", "")?.0 == 200,
        "a link",
    )?;
    // Sends three requests on one connection. The server must answer all of them.
    let cookie = format!("Cookie: mdfsck_{}={}\r\n", server.port, server.cookie.as_deref().unwrap_or_default());
    let one = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{cookie}\r\n", server.port);
    let last = one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let answers = text(&server.raw(format!("{one}{one}{last}").as_bytes())?);
    ensure(answers.matches("HTTP/1.1 200 OK").count() == 3, answers)?;
    server.lives()
}

/// A generator of pseudo-random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A request that no browser sends, chosen by `number`.
fn hostile(number: u64, port: u16) -> Vec<u8> {
    let mut random = Random(number);
    let climbs = [
        "/../canary.txt",
        "/../../canary.txt",
        "/page/../canary.txt",
        "/%2e%2e/canary.txt",
        "/..%2fcanary.txt",
        "/page/%2e%2e%2fcanary.txt",
        "/page/....//canary.txt",
        "/canary.txt",
        "//canary.txt",
        "/./canary.txt",
        "/page/1/../../canary.txt",
        "/style.css/../canary.txt",
        "/page/canary.txt",
        "/page/1%00canary.txt",
        "/page/..\\canary.txt",
        "/%c0%ae%c0%ae/canary.txt",
        "file:///canary.txt",
        "/database/canary.txt",
        "/page/1?file=canary.txt",
        "/page/1:2",
        "/page/-1",
        "/run/18446744073709551616",
        "*",
        "http://127.0.0.1/canary.txt",
        "/page/1#canary.txt",
        "/running/../canary.txt",
        "/running/1/canary.txt",
    ];
    let method =
        random.of(&["GET", "HEAD", "POST", "GET", "get", "PUT", "CONNECT", "G\0T", "", "GET GET", "OPTIONS", "PATCH"]);
    let version = random.of(&["HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "HTTP/2.0", "", "http/1.1", "HTTP/1.1 "]);
    let host = format!("127.0.0.1:{port}");
    let mut request = match number % 10 {
        // Sends paths that contain `..` or similar parts.
        0..4 => format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", random.of(&climbs)).into_bytes(),
        // Random bytes.
        4 => (0..random.below(3000)).map(|_| random.below(256) as u8).collect(),
        // Heads of requests that never end.
        5 => {
            let header =
                random.of(&["a: b\r\n", "Cookie: x\r\n", "x", ": \r\n", "Host: 127.0.0.1\r\n", "\u{e9}: \u{e9}\r\n"]);
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}", header.repeat(random.below(20_000) as usize)).into_bytes()
        }
        // Bodies that are much too long or do not have the stated length.
        6 => {
            let length = random.of(&[
                "5",
                "999999999999",
                "-1",
                "0x10",
                "1e3",
                "18446744073709551616",
                "0",
                "8193",
                " 7 ",
                "5, 5",
            ]);
            let body = "token=canary.txt&because=".repeat(random.below(2000) as usize);
            format!("POST /acknowledge/1 HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}")
                .into_bytes()
        }
        // Headers that different HTTP implementations interpret differently.
        7 => {
            let header = random.of(&[
                "Transfer-Encoding: chunked",
                "Content-Length: 1\r\nContent-Length: 2",
                "Host: evil",
                "Expect: 100-continue",
                "Upgrade: h2c",
                "Range: bytes=0-",
                "X: \0",
                " folded: 1",
                "Host : 127.0.0.1",
                "Connection: close, keep-alive",
                "Content-Length: 0\r\n\r\nGET /../canary.txt HTTP/1.1",
            ]);
            format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n", random.of(&climbs)).into_bytes()
        }
        // Very long request targets.
        8 => {
            let part = random.of(&["a", "../", "%2e%2e%2f", "/", "1", "\u{202e}", "%"]);
            format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", part.repeat(random.below(100_000) as usize))
                .into_bytes()
        }
        _ => format!("{method} {} {version}\r\nHost: {host}\r\n\r\n", random.of(&climbs)).into_bytes(),
    };
    // Changes some bytes of the request, or truncates it.
    for _ in 0..random.below(4) {
        let at = random.below(request.len().max(1) as u64) as usize;
        if let Some(byte) = request.get_mut(at) {
            *byte = random.below(256) as u8;
        }
    }
    if random.below(5) == 0 {
        request.truncate(random.below(request.len() as u64 + 1) as usize);
    }
    request
}

/// A text that no answer may contain.
const CANARY: &str = "mdfsck-canary-7f3a";

/// All rows of a history.
fn rows(folder: &Path) -> Result<Vec<String>, Failed> {
    let connection = rusqlite::Connection::open(folder.join("h.db"))?;
    let mut tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut all = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let values: Vec<rusqlite::types::Value> = (0..columns).map(|at| row.get(at)).collect::<Result<_, _>>()?;
            all.push(format!("{table} {values:?}"));
        }
    }
    ensure(all.len() > 20, "the rows")?;
    Ok(all)
}

fn hostile_requests(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    for place in ["canary.txt", "hurt/canary.txt"] {
        fs::write(folder.join(place), CANARY)?;
    }
    let mut server = Server::start(folder, &["--allow-ack"])?;
    let before = rows(folder)?;
    let mut kinds = std::collections::BTreeSet::new();
    for number in 0..500 {
        let request = hostile(number, server.port);
        kinds.insert(request.clone());
        let answer = text(&server.raw(&request)?);
        let start = text(&request[..request.len().min(200)]);
        ensure(
            !answer.contains(CANARY) && !answer.contains("SQLite format"),
            format!("{number}: {start:?}: {answer}"),
        )?;
        ensure(answer.is_empty() || answer.starts_with("HTTP/1.1 "), format!("{number}: {start:?}: {answer}"))?;
    }
    ensure(kinds.len() > 450, format!("{} kinds", kinds.len()))?;
    ensure(rows(folder)? == before, "the history was changed")?;
    server.lives()
}

fn slow_clients(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let mut server = Server::start(folder, &[])?;
    // Makes a page of several megabytes, which is larger than the network buffers of the system.
    change(
        folder,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO database SELECT 1000 + i, 'f' || i, 'database ' || i, '2026-01-01T00:00:00Z', 'f' || i, '' FROM n",
    )?;
    let bytes = server.get("/")?.1.len();
    ensure(bytes > 2_000_000, format!("{bytes} bytes"))?;
    // A third of the clients begin a request and never complete it, a third send nothing, and a third do not read the
    // answer.
    let mut slow = Vec::new();
    for number in 0..45 {
        let mut stream = server.connect()?;
        let start: &[u8] = match number % 3 {
            0 => b"GET / HTTP/1.1\r\nHost: ",
            1 => b"",
            _ => b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        };
        stream.write_all(start)?;
        slow.push(stream);
    }
    let trickle: Vec<TcpStream> = slow.iter().step_by(3).map(TcpStream::try_clone).collect::<Result<_, _>>()?;
    // The slow clients keep sending until another client has received its answer.
    let is_answered = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_answered.load(Ordering::Relaxed) {
                for mut stream in &trickle {
                    let _ = stream.write_all(b"1");
                }
                thread::sleep(Duration::from_millis(200));
            }
        });
        let lives = server.lives();
        is_answered.store(true, Ordering::Relaxed);
        lives
    })?;
    // The server must close the connection of each slow client. It may send status 408 before it closes the connection.
    let mut last = Vec::new();
    let _ = slow[0].read_to_end(&mut last);
    ensure(last.is_empty() || text(&last).starts_with("HTTP/1.1 408"), text(&last))?;
    server.lives()
}

fn acknowledgement(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let server = Server::start(folder, &[])?;
    ensure(
        server.token.is_none() && server.ask("POST", "/acknowledge/1", "", "token=x&because=y")?.0 == 403,
        "not allowed",
    )?;
    drop(server);
    let known = |folder: &Path| {
        text(&mdfsck(folder, &["history", "h.db", "findings", "--json"]).stdout).matches("\"ack_by\":\"").count()
    };
    let server = Server::start(folder, &["--allow-ack"])?;
    let token = server.token.clone().ok_or("no token")?;
    let form = |token: &str, rest: &str| format!("token={token}&{rest}");
    for (body, status) in [
        (form("", "because=x"), 403),
        (form(&token[1..], "because=x"), 403),
        (form(&format!("{token}0"), "because=x"), 403),
        (form(&token, "because="), 400),
        (form(&token, "because=x&until=soon"), 400),
        (form(&token, "because=x&until=2001-01-01"), 400),
    ] {
        ensure(server.ask("POST", "/acknowledge/1", "", &body)?.0 == status, body)?;
    }
    let good = form(&token, "because=is+rebuilt+on+%3Cb%3ESunday&until=2199-12-01");
    ensure(server.ask("POST", "/acknowledge/1", "Sec-Fetch-Site: cross-site\r\n", &good)?.0 == 403, "another site")?;
    ensure(server.ask("POST", "/acknowledge/999", "", &good)?.0 == 404, "no such finding")?;
    ensure(server.ask("GET", &format!("/acknowledge/1?{good}"), "", "")?.0 == 405, "by GET")?;
    ensure(known(folder) == 0, "nothing is acknowledged yet")?;
    let before = server.model("/")?["estate"]["rows"][0]["acknowledged"].clone();
    let (status, head, _) = server.ask("POST", "/acknowledge/1", "Sec-Fetch-Site: same-origin\r\n", &good)?;
    ensure(status == 303 && head.contains("Location: /database/"), head)?;
    ensure(known(folder) == 1, "acknowledged")?;
    let row = &server.model("/")?["estate"]["rows"][0];
    ensure(before == 0 && row["acknowledged"] == 1 && row["state"] == "corrupt", row.to_string())?;
    drop(server);
    fs::write(folder.join("token"), "short")?;
    let short = ["serve", "--history", "h.db", "--allow-ack", "--token-file", "token"];
    refused(&mdfsck(folder, &short), 8, &["token", "at least 16 characters"])?;
    fs::write(folder.join("token"), "0123456789abcdef\n")?;
    let server = Server::start(folder, &["--allow-ack", "--token-file", "token"])?;
    ensure(server.ask("POST", "/acknowledge/1", "", "token=0123456789abcdef&because=x")?.0 == 303, "token of a file")
}

fn other_files(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    fs::write(folder.join("canary.txt"), format!("{CANARY}\n").repeat(1000))?;
    let mut server = Server::start(folder, &[])?;
    let whole = folder.join("canary.txt").display().to_string();
    for paths in [whole.as_str(), "canary.txt", "--help", "/etc/passwd", "/nowhere/a.mdf", "s3://bucket/a.bak"] {
        change(folder, &format!("UPDATE run SET paths = '{}'", paths.replace('\'', "''")))?;
        let (status, page) = server.get("/page/1")?;
        ensure(status == 200 && page.contains("To show the page") && page.contains("mdfsck page "), page.clone())?;
        ensure(!page.contains(CANARY) && !page.contains("root:") && !page.contains("Usage:"), page)?;
    }
    // A path in the history may be on another machine, or may name a file that now belongs to another database. The
    // server must show bytes only from a file of the same database.
    let whole = folder.join("hurt/orders.mdf").display().to_string().replace('\'', "''");
    change(folder, &format!("UPDATE run SET paths = '{whole}'"))?;
    let here = server.get("/page/1")?.1;
    ensure(here.contains("m_headerVersion"), here)?;
    let other = folder.join("other/orders.mdf").display().to_string().replace('\'', "''");
    change(folder, &format!("UPDATE run SET paths = '{other}'"))?;
    let there = server.get("/page/1")?.1;
    ensure(there.contains("These files now belong to another database") && !there.contains("m_headerVersion"), there)?;
    change(folder, &format!("UPDATE run SET paths = '{whole}'"))?;
    change(folder, "UPDATE run SET host = 'elsewhere'")?;
    let there = server.get("/page/1")?.1;
    ensure(there.contains("The files are on elsewhere") && !there.contains("m_headerVersion"), there)?;
    server.lives()
}

fn changes(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    let server = Server::start(folder, &[])?;
    let id = server.model("/")?["estate"]["rows"][0]["id"].as_i64().ok_or("no database")?;
    let under_way = |server: &Server| Ok::<_, Failed>(server.model("/")?["estate"]["rows"][0]["under_way"].clone());
    ensure(under_way(&server)?.is_null(), "nobody works")?;
    let now = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";
    change(
        folder,
        &format!(
            "INSERT INTO lease VALUES ({id}, 'night1', 1, {now}, {now});
             INSERT INTO window (image, started, ended, allowed_seconds, ranges, bytes, seconds)
             SELECT i.id, {now}, {now}, 3600, 12, 34000000, 1.0 FROM image i JOIN source s ON s.id = i.source WHERE s.database = {id} LIMIT 1"
        ),
    )?;
    thread::sleep(Duration::from_millis(1100));
    let seen = under_way(&server)?;
    ensure(
        seen["host"] == "night1" && seen["window"] == serde_json::json!([3600.0, 12, 34_000_000]),
        seen.to_string(),
    )?;
    let of_database = &server.model(&format!("/database/{id}"))?["database"]["row"]["under_way"];
    ensure(*of_database == seen, of_database.to_string())?;
    change(folder, "DELETE FROM lease")?;
    thread::sleep(Duration::from_millis(1100));
    ensure(under_way(&server)?.is_null(), "it has ended")?;
    // Replaces the file of the running server by another history.
    ensure(mdfsck(folder, &["check", "other", "--history", "new.db"]).status.code() == Some(0), "check")?;
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(folder.join(format!("h.db{suffix}")));
    }
    fs::rename(folder.join("new.db"), folder.join("h.db"))?;
    let rows = server.model("/")?["estate"]["rows"].clone();
    ensure(rows.as_array().is_some_and(|rows| rows.len() == 1 && rows[0]["state"] == "sound"), rows.to_string())?;
    fs::remove_file(folder.join("h.db"))?;
    let (status, page) = server.get("/")?;
    ensure(status == 500 && page.contains("no such history"), page)
}

/// A running check with a limited read rate, so that the check takes some seconds.
pub(super) struct Slow(Child);

impl Slow {
    pub(super) fn start(folder: &Path, name: &str, rate: &str) -> Result<Self, Failed> {
        let child = Command::new(env!("CARGO_BIN_EXE_mdfsck"))
            .args(["check", name, "--history", "h.db", "--io-limit", rate, "--maxdop", "1"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    fn end(mut self) -> Result<(Option<i32>, String, String), Failed> {
        let read = |pipe: Option<&mut dyn Read>| -> Result<String, Failed> {
            let mut bytes = Vec::new();
            pipe.ok_or("no pipe")?.read_to_end(&mut bytes)?;
            Ok(text(&bytes))
        };
        let out = read(self.0.stdout.as_mut().map(|pipe| pipe as &mut dyn Read))?;
        let error = read(self.0.stderr.as_mut().map(|pipe| pipe as &mut dyn Read))?;
        Ok((self.0.wait()?.code(), out, error))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `seen` repeatedly until it returns a value, and returns this value.
pub(super) fn waited<T>(mut seen: impl FnMut() -> Result<Option<T>, Failed>) -> Result<T, Failed> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(seen) = seen()? {
            return Ok(seen);
        }
        thread::sleep(Duration::from_millis(200));
    }
    Err("it is not seen".into())
}

fn under_way(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    ensure(mdfsck(folder, &["lab", "new", "slow", "--size", "40MB"]).status.success(), "lab new")?;
    let server = Server::start(folder, &[])?;
    let running = |target: &str, model: &str| -> Result<Option<Value>, Failed> {
        let model = server.model(target)?[model]["running"][0].clone();
        Ok(Some(model).filter(|running| !running.is_null()))
    };
    ensure(running("/", "estate")?.is_none(), "nothing is under way")?;
    // This check would take forty seconds. The test kills it long before its end.
    let slow = Slow::start(folder, "slow", "1MB")?;
    let first = waited(|| Ok(running("/", "estate")?.filter(|first| first["done"].as_u64() > Some(0))))?;
    ensure(first["phase"] == "reading pages" && first["is_stopped"] == false, first.to_string())?;
    ensure(first["pages"].as_u64() > first["done"].as_u64(), first.to_string())?;
    let id = &first["id"];
    let (status, page) = server.get(&format!("/running/{id}"))?;
    ensure(status == 200 && !page.contains("style="), page.clone())?;
    let later = waited(|| {
        let later = server.model(&format!("/running/{id}"))?["running"].clone();
        let curves = server.get(&format!("/running/{id}"))?.1.matches("<figure>").count();
        let is_later = later["done"].as_u64() > first["done"].as_u64();
        Ok(Some(later).filter(|_| is_later && curves >= if cfg!(target_os = "linux") { 4 } else { 2 }))
    })?;
    // The map must cover all pages of the file. The first pages have already been read; the last pages have not.
    let ranges = later["files"][0]["ranges"].as_array().ok_or("no map")?;
    let pages: u64 = ranges.iter().filter_map(|range| range[0].as_u64()).sum();
    ensure(later["files"][0]["pages"].as_u64() == Some(pages) && ranges[0][1] == 2, later.to_string())?;
    ensure(ranges.last().is_some_and(|last| last[1] == 0), later.to_string())?;
    // All lab databases have the same family GUID, so the history treats them as copies of one database.
    let database = format!("/database/{}", later["database"]);
    ensure(running(&database, "database")?.is_some_and(|here| here["id"] == *id), "the page of the database")?;
    // The page shows a killed check as stopped.
    drop(slow);
    let long_ago = "UPDATE progress SET heartbeat = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-300 seconds')";
    change(folder, long_ago)?;
    thread::sleep(Duration::from_millis(1100));
    let stopped = running("/", "estate")?.ok_or("it was forgotten")?;
    ensure(stopped["is_stopped"] == true && stopped["id"] == *id, stopped.to_string())?;
    // A later check of the same files replaces the entry of the killed check in the list of running checks. When the
    // later check ends, it removes its own entry.
    let (status, out, error) = Slow::start(folder, "slow", "12MB")?.end()?;
    ensure(status == Some(0) && error.is_empty(), error)?;
    let quick = text(&mdfsck(folder, &["check", "slow"]).stdout);
    ensure(out == quick, "the report is that of a check without a history")?;
    thread::sleep(Duration::from_millis(1100));
    ensure(running("/", "estate")?.is_none() && running(&database, "database")?.is_none(), "it has ended")?;
    let (status, head, _) = server.ask("GET", &format!("/running/{id}"), "", "")?;
    ensure(status == 303 && head.contains("Location: /\r\n"), head)
}

fn notes_that_fail(folder: &Path) -> Result<(), Failed> {
    history(folder)?;
    ensure(mdfsck(folder, &["lab", "new", "slow", "--size", "40MB", "--seed", "5"]).status.success(), "lab new")?;
    let quick = text(&mdfsck(folder, &["check", "slow"]).stdout);
    // Another program locks the history during the check. The check must still end with its normal results.
    let other = rusqlite::Connection::open(folder.join("h.db"))?;
    let slow = Slow::start(folder, "slow", "12MB")?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    thread::sleep(Duration::from_millis(2500));
    other.execute_batch("COMMIT")?;
    let (status, out, error) = slow.end()?;
    ensure(status == Some(0) && out == quick && error.is_empty(), error)?;
    // The history is damaged during the check. The check must still print its results, and must report that the run is
    // not recorded.
    let slow = Slow::start(folder, "slow", "8MB")?;
    let under_way = "SELECT count(*) FROM progress";
    waited(|| {
        Ok(other.query_row(under_way, [], |row| row.get::<_, i64>(0)).map(|count| (count > 0).then_some(()))?)
    })?;
    other.execute_batch("DROP TABLE progress")?;
    let (status, out, error) = slow.end()?;
    ensure(status == Some(4) && out == quick, format!("{status:?} {error}"))?;
    let lines: Vec<&str> = error.lines().collect();
    ensure(
        lines.len() == 2
            && lines[0].ends_with("does not show the progress of this check")
            && lines[1].ends_with("the run is not recorded"),
        error.clone(),
    )
}

fn starts(folder: &Path) -> Result<(), Failed> {
    refused(&mdfsck(folder, &["serve", "--history", "no.db"]), 8, &["no.db", "no such history"])?;
    history(folder)?;
    let open = ["serve", "--history", "h.db", "--listen", "0.0.0.0:0"];
    refused(&mdfsck(folder, &open), 8, &["--listen 0.0.0.0:0", "--allow-remote"])?;
    let server = Server::start(folder, &[])?;
    let taken = format!("127.0.0.1:{}", server.port);
    refused(
        &mdfsck(folder, &["serve", "--history", "h.db", "--listen", &taken]),
        4,
        &[&taken, "cannot listen on this address"],
    )?;
    let token = ["serve", "--history", "h.db", "--token-file", "token"];
    ensure(mdfsck(folder, &token).status.code() == Some(8), "--token-file without --allow-ack")
}

fn clicks(folder: &Path) -> Result<(), Failed> {
    let browser = Browser::find().ok_or("no browser")?;
    history(folder)?;
    change(folder, &format!("UPDATE database SET name = '{}' WHERE id = 2", hostile_name()))?;
    let server = Server::start(folder, &["--allow-ack"])?;
    let url = server.url("/");
    let mut session = Session::open(&browser, folder)?;
    let mut grounds = Vec::new();
    for (width, is_dark) in [(400, false), (400, true), (1100, false)] {
        session.show(&url, (width, is_dark))?;
        let fits = |session: &mut Session| -> Result<(), Failed> {
            let wide = session.value("document.documentElement.scrollWidth")?;
            ensure(wide.as_u64() <= Some(width.into()), format!("{wide} pixels wide"))?;
            ensure(session.value("document.images.length")? == 0, "a name became markup")
        };
        session.value("document.documentElement.dataset.ready")?;
        fits(&mut session)?;
        ensure(session.value("document.querySelector('.state').textContent")? == "corrupt", "the worst is the first")?;
        // Typing a text into the filter hides the databases that do not contain it.
        let shown = "(()=>{const box=document.getElementById('filter');box.value='SOUND';box.dispatchEvent(new Event('input'));\
                     const shown=[...document.querySelectorAll('#estate tr:not(.heads)')].filter(row=>!row.hidden).length;box.value='';\
                     box.dispatchEvent(new Event('input'));return shown})()";
        ensure(session.value(shown)? == 1, "filter")?;
        session.follow("#estate a")?;
        session.value(
            "location.pathname.startsWith('/database/') && document.querySelector('.legend')?.children.length || null",
        )?;
        ensure(session.value("document.title.startsWith('</script>')")? == true, "the name is a text")?;
        fits(&mut session)?;
        session.value("document.querySelectorAll('section > details > summary').forEach(one => one.parentElement.open || one.click()), true")?;
        session.value("document.querySelector('.body summary') && true")?;
        session.value(
            "document.querySelectorAll('.body summary').forEach(one => one.parentElement.open || one.click()), true",
        )?;
        session.value("document.querySelector('form.ack') && true")?;
        session.follow("a[href^='/page/']")?;
        let bytes = session.value("document.querySelector('pre.printed')?.textContent ?? null")?;
        ensure(bytes.as_str().is_some_and(|bytes| bytes.contains("m_headerVersion")), bytes.to_string())?;
        fits(&mut session)?;
        grounds.push(session.value("getComputedStyle(document.body).backgroundColor")?);
        ensure(session.complaints.is_empty(), format!("{:?}", session.complaints))?;
    }
    ensure(grounds[0] != grounds[1], "no dark mode")
}
