//! One object on any web server, accessed by its whole URL. The query of a presigned URL is valid only for exactly this
//! URL.

use std::fmt;
use std::io;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};

use crate::redirects;

/// Sends every request to the same URL.
pub(crate) struct WholeUrl {
    url: String,
    /// Servers to which the web server may redirect.
    allowed: Vec<String>,
}

impl WholeUrl {
    /// Keeps `url` for all requests, without its fragment. `allowed` lists servers to which the web server may
    /// redirect.
    ///
    /// # Errors
    /// An error if `url` is not a URL.
    pub(crate) fn new(url: &str, allowed: &[String]) -> object_store::Result<Self> {
        let mut url = reqwest::Url::parse(url).map_err(of_client)?;
        url.set_fragment(None);
        Ok(Self { url: url.into(), allowed: allowed.to_vec() })
    }
}

/// The URL may contain secrets, so it is left out.
impl fmt::Debug for WholeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeUrl").finish_non_exhaustive()
    }
}

impl HttpConnector for WholeUrl {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(redirects::client(self.allowed.clone()).build().map_err(of_client)?);
        Ok(HttpClient::new(Service { url: self.url.clone(), client }))
    }
}

fn of_client(cause: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP", source: Box::new(cause) }
}

struct Service {
    url: String,
    client: HttpClient,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Ok(url) = self.url.parse() else {
            let not_a_url = io::Error::new(io::ErrorKind::InvalidInput, "not a URL");
            return Err(HttpError::new(HttpErrorKind::Request, not_a_url));
        };
        *request.uri_mut() = url;
        self.client.execute(request).await
    }
}
