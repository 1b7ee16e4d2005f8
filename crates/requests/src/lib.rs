//! Parses HTTP requests. Supports the part of HTTP/1.1 that a browser needs, and limits everything that is received.

#![warn(clippy::indexing_slicing)]

mod routes;

pub use routes::{Route, fields, route};

/// Maximum size of the head of a request, in bytes.
pub const HEAD_BYTES: usize = 8 << 10;
/// Maximum number of header lines of a request.
const MOST_HEADERS: usize = 64;
/// Maximum size of the body of a request, in bytes.
pub const BODY_BYTES: usize = 8 << 10;

/// An HTTP request.
#[derive(Debug)]
pub struct Request {
    /// The method as the client wrote it, such as `GET` or `POST`.
    pub method: String,
    /// The target of the request, see [`route`].
    pub target: String,
    /// The Host header: the name that the client uses for this server.
    pub host: Option<String>,
    /// The Sec-Fetch-Site header: where the request comes from, such as `same-origin` or `cross-site`.
    pub fetch_site: Option<String>,
    /// The Sec-Fetch-Mode header: the purpose of the request, such as `navigate` when a user follows a link.
    pub fetch_mode: Option<String>,
    /// The cookies in the request, as `name=value; name=value`.
    pub cookie: Option<String>,
    /// The body of the request.
    pub body: Vec<u8>,
    /// Whether the client may send another request on the same connection.
    pub may_go_on: bool,
}

impl Request {
    /// Whether the method is HEAD, so that the answer must have no body.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Splits the target into its path and the fields of its query.
    pub fn target(&self) -> (&str, Vec<(String, String)>) {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        (path, fields(query.as_bytes()))
    }

    /// The value of the cookie with this name; `None` if the request does not have this cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let pairs =
            self.cookie.as_deref().unwrap_or_default().split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

/// The head of a request, and the sizes of head and body.
#[derive(Debug)]
pub struct Head {
    /// The request, without its body.
    pub request: Request,
    /// Size of the head, in bytes.
    pub head_bytes: usize,
    /// Size of the body that follows the head, in bytes.
    pub body_bytes: usize,
}

/// Parses the head at the start of `received`; `None` if the head is not complete yet.
///
/// # Errors
/// The status for the answer if the head is invalid.
pub fn parse(received: &[u8]) -> Result<Option<Head>, u16> {
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
            // Refuses a repeated header, because a proxy in front of this server may have used a different one of its
            // values.
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
        cookie: one("cookie")?,
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
    fn a_cookie_is_found_by_its_whole_name() {
        let of = |cookie: &str| {
            let text = format!("GET /run/1?token=a%20b&x HTTP/1.1\r\nCookie: {cookie}\r\n\r\n");
            parse(text.as_bytes()).unwrap().unwrap().request
        };
        let request = of("a=1; mdfsck=2;mdfsck_80=3");
        assert_eq!((request.cookie("mdfsck"), request.cookie("mdfsck_80")), (Some("2"), Some("3")));
        assert_eq!((request.cookie("mdf"), of("").cookie("a"), of("a").cookie("a")), (None, None, None));
        let (path, fields) = request.target();
        assert_eq!((path, fields[0].1.as_str()), ("/run/1", "a b"));
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
