//! Decides which redirects are followed. A SAS in a query or a token in a header must reach only the server for which
//! it was issued. A redirect to another server is therefore followed only if the user allowed that server, and the
//! request to it contains no such credentials.

use std::time::Duration;

use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy, Url};

use crate::time_limits::TIMEOUTS;

/// The most redirects that one request follows.
const MOST: usize = 10;
/// The start of an error text; the name of the other server follows it.
pub(crate) const ANOTHER: &str = "the answer leads to another server: ";

/// A policy that follows redirects to the server of the original request, and to the servers in `allowed`.
pub(crate) fn policy(allowed: Vec<String>) -> Policy {
    Policy::custom(move |attempt| {
        let Some(asked) = attempt.previous().first() else { return attempt.stop() };
        if attempt.previous().len() > MOST {
            return attempt.error("the redirects form a loop");
        }
        let host = attempt.url().host_str().unwrap_or_default();
        let is_allowed =
            allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) && !is_less_safe(asked, attempt.url());
        if is_allowed || is_same_server(asked, attempt.url()) {
            return attempt.follow();
        }
        let error = format!("{ANOTHER}{host}");
        attempt.error(error)
    })
}

fn is_less_safe(asked: &Url, next: &Url) -> bool {
    asked.scheme() == "https" && next.scheme() != "https"
}

/// Whether both URLs name the same server: the host, the scheme and the port are equal. A redirect from `http://` to
/// `https://` is also accepted if both URLs use the default ports.
fn is_same_server(asked: &Url, next: &Url) -> bool {
    let is_safer = asked.scheme() == "http" && next.scheme() == "https" && (asked.port(), next.port()) == (None, None);
    asked.host_str() == next.host_str()
        && (is_safer
            || (asked.scheme(), asked.port_or_known_default()) == (next.scheme(), next.port_or_known_default()))
}

/// A client with the time limits of all storages. It sends no referrer.
pub(crate) fn client(allowed: Vec<String>) -> ClientBuilder {
    let [connect, silence, request] = TIMEOUTS;
    let builder = Client::builder().referer(false).redirect(policy(allowed)).http1_only();
    builder.connect_timeout(connect).read_timeout(silence).timeout(request)
}

/// Creates clients for storages with requests that are signed or carry a token. Such clients follow no redirect to
/// another server.
#[derive(Debug)]
pub(crate) struct ToOneServer;

impl HttpConnector for ToOneServer {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed = |cause: reqwest::Error| object_store::Error::Generic { store: "HTTP", source: Box::new(cause) };
        let value = |key: ClientConfigKey| options.get_config_value(&key);
        let is_set = |key: ClientConfigKey| value(key).as_deref() == Some("true");
        let mut builder = client(Vec::new()).https_only(!is_set(ClientConfigKey::AllowHttp));
        // The metadata service, from which a cloud machine gets its credentials, answers immediately or does not exist.
        // Its connection timeout therefore stays short.
        if value(ClientConfigKey::ConnectTimeout).as_deref() == Some("1s") {
            builder = builder.connect_timeout(Duration::from_secs(1));
        }
        if is_set(ClientConfigKey::AllowInvalidCertificates) {
            builder = builder.danger_accept_invalid_certs(true);
        }
        if let Some(url) = value(ClientConfigKey::ProxyUrl) {
            let proxy = Proxy::all(url).map_err(failed)?;
            let excluded = value(ClientConfigKey::ProxyExcludes);
            builder = builder.proxy(proxy.no_proxy(excluded.as_deref().and_then(NoProxy::from_string)));
            if let Some(pem) = value(ClientConfigKey::ProxyCaCertificate) {
                let certificate = Certificate::from_pem(pem.as_bytes()).map_err(failed)?;
                builder = builder.tls_certs_merge(std::iter::once(certificate));
            }
        }
        Ok(HttpClient::new(builder.build().map_err(failed)?))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    use object_store::client::{HttpRequest, HttpRequestBody};

    use super::*;

    #[test]
    fn only_the_server_that_was_asked_is_the_same() {
        let is_same = |asked: &str, next: &str| is_same_server(&Url::parse(asked).unwrap(), &Url::parse(next).unwrap());
        assert!(is_same("https://a.example/x?sig=1", "https://A.example:443/y"));
        assert!(is_same("http://a.example/x", "https://a.example/x"), "a safer way to it");
        assert!(!is_same("https://a.example/x", "http://a.example/x"), "others could read it");
        assert!(!is_same("https://a.example/x", "https://a.example:8443/x"), "another program");
        assert!(!is_same("https://a.example/x", "https://b.example/x"));
        assert!(!is_same("https://a.example/x", "https://a.example.b.example/x"));
    }

    /// Starts a server on this machine. It gives each request the same answer and records the requests. Returns its
    /// port and the recorded requests.
    fn server(answer: String) -> (u16, Arc<Mutex<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(String::new())));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                let mut bytes = [0; 4096];
                let read = connection.read(&mut bytes).unwrap_or(0);
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        (port, asked)
    }

    #[test]
    fn a_token_in_a_header_goes_to_one_server_only() {
        let (there, asked_there) =
            server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned());
        let leads = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://localhost:{there}/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let (here, asked_here) = server(leads);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ToOneServer.connect(&ClientOptions::new().with_allow_http(true)).unwrap();
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = format!("http://127.0.0.1:{here}/b/x?sig=SECRET").parse().unwrap();
        request.headers_mut().insert("x-amz-security-token", "TOKEN".parse().unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(client.execute(request)).unwrap_err();
        let told = std::error::Error::source(&error).map(|cause| format!("{cause:?}")).unwrap_or_default();
        assert!(told.contains("another server: localhost"), "{told}");
        assert!(asked_here.lock().unwrap().contains("TOKEN"));
        assert_eq!(*asked_there.lock().unwrap(), "", "the other one was not asked");
    }
}
