//! Explains why an object cannot be read, in messages without secrets.

use std::error::Error;
use std::io;

use crate::location::Place;
use crate::redirects;
use crate::settings::Settings;

/// The most characters to show of another program's text.
const MOST_SHOWN: usize = 200;

/// The action that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    Open,
    Read,
    List,
}

/// Converts the error of a request into an I/O error that has a kind, the cause and the remedy.
pub(crate) fn of(error: &object_store::Error, act: Act, place: &Place, settings: &Settings) -> io::Error {
    use object_store::Error as E;
    let whole = chain(error);
    let status = status_in(&whole);
    let code = code_in(&whole).map_or_else(String::new, |code| format!(" {code}"));
    let (kind, text) = match (error, status) {
        // The client asks the machine's metadata service for credentials only if it has found no other credentials. The
        // answer of the service therefore does not matter.
        _ if *place != Place::Web && asks_machine(&whole) => (io::ErrorKind::Other, no_credentials(place).to_owned()),
        _ if let Some(server) = redirected_to(&whole) => (io::ErrorKind::Other, other_server(place, server)),
        _ if whole.contains("Account must be specified") => {
            (io::ErrorKind::Other, "the account is not known: set AZURE_STORAGE_ACCOUNT_NAME".to_owned())
        }
        (E::Precondition { .. }, _) | (_, Some(412)) => (io::ErrorKind::Other, OVERWRITTEN.to_owned()),
        (E::NotFound { .. }, _) | (_, Some(404)) if act == Act::Read => {
            (io::ErrorKind::Other, "the object was deleted while it was read; check another copy".to_owned())
        }
        (E::NotFound { .. }, _) | (_, Some(404)) => {
            (io::ErrorKind::NotFound, format!("no object has this name (404{code}); check the spelling"))
        }
        (E::PermissionDenied { .. } | E::Unauthenticated { .. }, _) | (_, Some(401 | 403)) => {
            let status = status.unwrap_or(403);
            (io::ErrorKind::Other, format!("access is denied ({status}{code}); {}", remedy(place)))
        }
        (E::NotSupported { .. }, _) => (io::ErrorKind::Other, NO_RANGES.to_owned()),
        (_, Some(301 | 307 | 400)) if matches!(place, Place::S3 { .. }) => {
            let status = status.unwrap_or_default();
            (
                io::ErrorKind::Other,
                format!("the storage refuses ({status}{code}); check the bucket's region (AWS_REGION)"),
            )
        }
        (_, Some(status)) => {
            (io::ErrorKind::Other, format!("the storage answers {status}{code}, even after retries; try again later"))
        }
        _ => {
            let cause = clean(&innermost(error), settings);
            let remedy = "check the network, the name of the server, and the proxy (HTTPS_PROXY)";
            (io::ErrorKind::Other, format!("the storage cannot be reached: {cause}; {remedy}"))
        }
    };
    io::Error::new(kind, text)
}

/// The name of the other server to which the answer redirects.
fn redirected_to(whole: &str) -> Option<&str> {
    let host = whole.split_once(redirects::ANOTHER)?.1;
    host.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_' | ':' | '[' | ']')).next()
}

fn other_server(place: &Place, server: &str) -> String {
    let remedy = match place {
        Place::Web => format!("name the URL on that server, or allow the server with MDFSCK_REDIRECT_TO={server}"),
        _ => "mdfsck sends no credentials to that server; check the region, and the configured endpoint".to_owned(),
    };
    format!("the storage redirects to another server, {server}; {remedy}")
}

/// The object has changed since it was opened.
pub(crate) const OVERWRITTEN: &str = "the object was overwritten while it was read (its ETag changed); check the object again when no program writes to it";
/// The server sends more bytes than requested.
pub(crate) const TOO_LONG: &str =
    "the server sends more data than requested, or an impossible length; copy the file and check the copy";
/// The server sends whole objects only.
pub(crate) const NO_RANGES: &str = "the server does not support range requests, so the file cannot be read from this server; copy the file and check the copy";

/// Whether the server answered that the requested range is outside the object.
pub(crate) fn is_outside(error: &object_store::Error) -> bool {
    let text = chain(error);
    status_in(&text) == Some(416) || text.contains("InvalidRange")
}

/// The remedy for a denied request.
fn remedy(place: &Place) -> &'static str {
    match place {
        Place::S3 { .. } => {
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and their permissions s3:GetObject and s3:ListBucket"
        }
        Place::Azure { .. } => {
            "check the SAS (expiry, and the permissions r and l), or AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY"
        }
        Place::Google { .. } => "check GOOGLE_APPLICATION_CREDENTIALS, and the permission to read these objects",
        Place::Web => "the signature in the URL may have expired, or be for another method than GET: ask for a new URL",
    }
}

/// Whether the request went to the metadata service of a cloud machine. The client asks this service if it finds no
/// other credentials.
fn asks_machine(whole: &str) -> bool {
    ["://169.254.", "://metadata.google.internal", "://metadata/"].iter().any(|part| whole.contains(part))
}

fn no_credentials(place: &Place) -> &'static str {
    match place {
        Place::S3 { .. } => {
            "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        }
        Place::Azure { .. } => {
            "no credentials were found: set AZURE_STORAGE_ACCOUNT_KEY, or name a URL https://ACCOUNT.blob.core.windows.net/... with its SAS"
        }
        Place::Google { .. } | Place::Web => "no credentials were found: set GOOGLE_APPLICATION_CREDENTIALS",
    }
}

/// The texts of an error and of all its causes. They are only searched and never shown.
fn chain(error: &dyn Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        text = format!("{text}\n{cause}");
        next = cause.source();
    }
    text
}

fn innermost(error: &dyn Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// The HTTP status of the server's answer.
fn status_in(text: &str) -> Option<u16> {
    let after = text.split_once("status code: ")?.1;
    after.get(..3)?.parse().ok()
}

/// The error code in the server's answer: `<Code>AccessDenied</Code>`.
fn code_in(text: &str) -> Option<&str> {
    let code = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    let is_name = (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then_some(code)
}

/// Cleans a text of another program: removes secrets, the queries of URLs, and line breaks.
fn clean(text: &str, settings: &Settings) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    for secret in settings.texts() {
        text = text.replace(&secret, "...");
    }
    let words: Vec<&str> = text
        .split(' ')
        .map(|word| if word.contains("://") { word.split('?').next().unwrap_or_default() } else { word })
        .collect();
    let text = words.join(" ");
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn error(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn no_text_of_another_program_brings_a_secret_along() {
        let shown = "https://acme.example/x.bak";
        let secrets = BTreeMap::from([(shown.to_owned(), format!("{shown}?sv=2024&sig=TOPSECRET%2Babc"))]);
        let settings = Settings { secrets, ..Settings::default() };
        for text in [
            "error sending request for url (https://acme.example/x.bak?sv=2024&sig=TOPSECRET%2Babc)",
            "redirected to https://other.example/y?token=OTHERSECRET",
            "signature TOPSECRET%2Babc does not match",
        ] {
            for act in [Act::Open, Act::Read, Act::List] {
                let text = of(&error(text), act, &Place::Web, &settings).to_string();
                assert!(!text.contains("TOPSECRET") && !text.contains("OTHERSECRET"), "{text}");
            }
        }
    }

    #[test]
    fn the_status_and_the_storages_own_word_for_it_are_said() {
        let answer = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>ExpiredToken</Code>\
                      <Message>sig=SECRETSECRET</Message></Error>";
        let place = Place::S3 { endpoint: None, region: None, bucket: "b".to_owned() };
        let text = of(&error(answer), Act::Open, &place, &Settings::default()).to_string();
        assert!(text.starts_with("access is denied (403 ExpiredToken); check AWS_ACCESS_KEY_ID"), "{text}");
        assert!(!text.contains("SECRETSECRET"), "{text}");
        let busy = error("Server returned non-2xx status code: 503 Slow Down: ");
        let text = of(&busy, Act::Read, &place, &Settings::default()).to_string();
        assert_eq!(text, "the storage answers 503, even after retries; try again later");
    }
}
