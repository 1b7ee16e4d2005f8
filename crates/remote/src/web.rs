//! One object of any server, by its whole URL: a presigned one has a query that only this very URL may have.

use std::fmt;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// Sends every request to one URL.
pub(crate) struct WholeUrl {
    url: String,
}

impl WholeUrl {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.split('#').next().unwrap_or_default().to_owned() }
    }
}

/// The URL is secret.
impl fmt::Debug for WholeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeUrl").finish_non_exhaustive()
    }
}

impl HttpConnector for WholeUrl {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Service { url: self.url.clone(), client }))
    }
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
        if let Ok(url) = self.url.parse() {
            *request.uri_mut() = url;
        }
        self.client.execute(request).await
    }
}
