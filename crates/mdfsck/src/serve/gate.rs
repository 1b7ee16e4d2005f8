//! Restricts access to users who know the address that the server has printed, which contains a token. A token is
//! needed because every user of a machine can connect to a listening port, and the pages show bytes of rows.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use jobs::failure::Failure;
use requests::{Request, route};

use super::http::Answer;
use super::token::Token;

/// The name of the query parameter that contains the token.
const FIELD: &str = "token";
/// The delay before a request with a wrong token is answered.
const DELAY: Duration = Duration::from_millis(250);

pub(super) struct Gate {
    token: Option<Token>,
    /// The name of the cookie. It includes the port, since cookies are stored per host, and two servers on one machine
    /// need different cookies.
    cookie: String,
}

impl Gate {
    /// Makes a gate with a new token. If `is_open`, the gate has no token and accepts every request.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn new(is_open: bool, address: SocketAddr) -> Result<Self, Failure> {
        let token = if is_open { None } else { Some(Token::random()?) };
        Ok(Self { token, cookie: format!("mdfsck_{}", address.port()) })
    }

    /// The address of the start page, with the token.
    pub(super) fn address(&self, address: SocketAddr) -> String {
        let token = self.token.as_ref().map(|token| format!("?{FIELD}={}", token.text()));
        format!("http://{address}/{}", token.unwrap_or_default())
    }

    /// The answer to a request without a valid cookie; `None` if the cookie is valid or not required.
    pub(super) fn refusal(&self, request: &Request) -> Option<Answer> {
        let token = self.token.as_ref()?;
        if request.cookie(&self.cookie).is_some_and(|sent| token.is(sent)) {
            return None;
        }
        let (path, fields) = request.target();
        let sent = fields.iter().find(|(name, _)| name == FIELD).map(|(_, value)| value.as_str());
        match sent {
            // Redirects to the same address without the token, since browsers show and store addresses and users share
            // them.
            Some(sent) if token.is(sent) && route(path).is_some() => Some(Answer {
                location: Some(path.to_owned()),
                cookie: Some(format!("{}={}", self.cookie, token.text())),
                ..Answer::refusal(303)
            }),
            _ => {
                if sent.is_some() {
                    thread::sleep(DELAY);
                }
                let text = "403 Forbidden\nUse the whole address that 'mdfsck serve' has printed: its token changes with each start.\n";
                Some(Answer::text(403, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_token_goes_on_and_it_does_not_stay_in_the_address() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let gate = Gate::new(false, address).unwrap();
        let asked = |target: &str, cookie: &str| {
            let text = format!("GET {target} HTTP/1.1\r\nCookie: {cookie}\r\n\r\n");
            let request = requests::parse(text.as_bytes()).unwrap().unwrap().request;
            gate.refusal(&request).map(|answer| (answer.status, answer.location))
        };
        let token = gate.address(address).rsplit_once('=').unwrap().1.to_owned();
        assert_eq!(asked("/", ""), Some((403, None)));
        assert_eq!(asked("/run/1", &format!("mdfsck_80={token}")), None);
        assert_eq!(asked("/", &format!("mdfsck_81={token}")), Some((403, None)), "that of another server");
        assert_eq!(asked("/", &format!("mdfsck_80={}", &token[1..])), Some((403, None)));
        assert_eq!(asked(&format!("/run/1?token={token}"), ""), Some((303, Some("/run/1".to_owned()))));
        assert_eq!(asked(&format!("/?token={token}0"), ""), Some((403, None)));
        assert_eq!(asked(&format!("//evil.example?token={token}"), ""), Some((403, None)), "it leads nowhere else");
        let open = Gate::new(true, address).unwrap();
        assert_eq!(open.address(address), "http://127.0.0.1:80/");
    }
}
