//! The routes of the server. A route contains only numbers, and never text from the request.

/// A page or an action that a client can request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// The page of all databases.
    Estate,
    /// The page of a database, by its ID in the history.
    Database(i64),
    /// The page of a run, by its ID in the history.
    Run(i64),
    /// The page of a running check, by its ID in the history.
    Running(i64),
    /// The page that shows the database page of a finding, by the key of the finding.
    Page(i64),
    /// The action that acknowledges a finding, by the key of the finding.
    Acknowledge(i64),
    /// The style sheet of all pages.
    Style,
    /// The script of all pages.
    Script,
}

/// Finds the route of a target; `None` if no route has this target.
pub fn route(target: &str) -> Option<Route> {
    let path = target.split(['?', '#']).next()?;
    match path {
        "/" => return Some(Route::Estate),
        "/style.css" => return Some(Route::Style),
        "/script.js" => return Some(Route::Script),
        _ => {}
    }
    let (kind, number) = path.strip_prefix('/')?.split_once('/')?;
    let is_number = (1..=18).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_number)?;
    match kind {
        "database" => Some(Route::Database(number)),
        "run" => Some(Route::Run(number)),
        "running" => Some(Route::Running(number)),
        "page" => Some(Route::Page(number)),
        "acknowledge" => Some(Route::Acknowledge(number)),
        _ => None,
    }
}

/// Parses the fields of a form as a browser sends them.
pub fn fields(body: &[u8]) -> Vec<(String, String)> {
    body.split(|byte| *byte == b'&')
        .map(|pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let mut half = || decoded(halves.next().unwrap_or_default());
            (half(), half())
        })
        .collect()
}

fn decoded(text: &[u8]) -> String {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match (byte, digit(at), digit(at + 1)) {
            (b'+', ..) => bytes.push(b' '),
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                at += 2;
            }
            _ => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_nothing_but_a_number() {
        assert_eq!(route("/"), Some(Route::Estate));
        assert_eq!(route("/?x=1"), Some(Route::Estate));
        assert_eq!(route("/database/12"), Some(Route::Database(12)));
        assert_eq!(route("/page/7?a"), Some(Route::Page(7)));
        assert_eq!(route("/running/3"), Some(Route::Running(3)));
        for none in [
            "",
            "*",
            "//",
            "/database",
            "/database/",
            "/database/1/",
            "/database/-1",
            "/database/+1",
            "/database/1e3",
            "/database/9999999999999999999",
            "/page/../../etc/passwd",
            "/page/%2e%2e/1",
            "/page/1:2",
            "/running/",
            "/running/1/2",
            "/../style.css",
            "/style.css/1",
            "http://a/",
            "/page/1%00",
            "/Database/1",
            "/database/١",
        ] {
            assert_eq!(route(none), None, "{none}");
        }
    }

    #[test]
    fn fields_are_read_as_a_browser_writes_them() {
        let all = fields(b"token=ab%2Bc&because=is+on+%E8%A1%A8%&until=&x");
        let expected = [("token", "ab+c"), ("because", "is on 表%"), ("until", ""), ("x", "")];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
