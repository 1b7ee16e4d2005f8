//! Clients for the storages, with credentials from the environment.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, resolve_bucket_region};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, Result, RetryConfig};

use crate::location::Place;
use crate::profile::Profile;
use crate::redirects::ToOneServer;
use crate::settings::Settings;
use crate::time_limits::{REQUEST, TIMEOUTS};
use crate::web::WholeUrl;

/// How long a failing request is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Patience {
    /// For requests at the start of a check, when a user waits for the answer.
    Little,
    /// For requests during a check, which may take hours.
    Much,
}

impl Patience {
    fn retries(self) -> RetryConfig {
        let (max_retries, seconds, first_milliseconds, longest_seconds, base) = match self {
            Self::Little => (5, 20, 100, 3, 2.0),
            // Only the time limit ends the retries. Each pause is random, and at most four times the previous pause.
            // The first pause is short, because the pieces after the failed piece wait for it.
            Self::Much => (10_000, 300, 10, 30, 4.0),
        };
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(first_milliseconds),
            max_backoff: Duration::from_secs(longest_seconds),
            base,
        };
        RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(seconds) }
    }
}

/// The settings of connections to any storage.
fn connection() -> [(ClientConfigKey, String); 3] {
    let keys = [ClientConfigKey::ConnectTimeout, ClientConfigKey::ReadTimeout, ClientConfigKey::Timeout];
    let mut timeouts = TIMEOUTS.into_iter();
    keys.map(|key| (key, format!("{} seconds", timeouts.next().unwrap_or(REQUEST).as_secs())))
}

/// The client for the storage of `shown`, a URL without secrets.
///
/// # Errors
/// An error if the settings cannot be used.
pub(crate) async fn open(
    place: &Place,
    shown: &str,
    settings: &Settings,
    patience: Patience,
) -> Result<Arc<dyn ObjectStore>> {
    Ok(match place {
        Place::S3 { endpoint, region, bucket } => {
            let builder = AmazonS3Builder::from_env().with_http_connector(ToOneServer);
            let mut builder = builder.with_bucket_name(bucket).with_retry(patience.retries());
            let profile = Profile::from_environment();
            let has_variable = |names: &[&str]| names.iter().any(|name| std::env::var_os(name).is_some());
            let has_keys = has_variable(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"]);
            if let (false, Some(key_id), Some(secret)) = (has_keys, &profile.key_id, &profile.secret) {
                builder = builder.with_access_key_id(key_id).with_secret_access_key(secret);
                builder = profile.token.iter().fold(builder, |builder, token| builder.with_token(token));
            }
            let of_environment = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
            let of_environment = of_environment.iter().find_map(|name| std::env::var(name).ok());
            let endpoint = endpoint.clone().or(of_environment).or(profile.endpoint);
            if let Some(endpoint) = &endpoint {
                builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
                // If the user sets an `http://` endpoint, plain HTTP is intended.
                if endpoint.starts_with("http://") {
                    builder = builder.with_allow_http(true);
                }
            }
            let of_environment = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| std::env::var(name).ok());
            let known = region.clone().or(of_environment).or(profile.region);
            let region = match (known, endpoint.is_none()) {
                (Some(region), _) => Some(region),
                // Amazon tells anyone the region of a bucket. If this query fails, the region may be wrong, and then
                // the first request to the bucket fails.
                (None, true) => resolve_bucket_region(bucket, &brief()).await.ok(),
                (None, false) => None,
            };
            builder = region.iter().fold(builder, |builder, region| builder.with_region(region));
            let set = |builder: AmazonS3Builder, (key, value): (ClientConfigKey, String)| {
                builder.with_config(AmazonS3ConfigKey::Client(key), value)
            };
            Arc::new(connection().into_iter().fold(builder, set).build()?)
        }
        Place::Azure { account, container } => {
            let mut builder = match settings.query(shown) {
                // The query given with the URL takes precedence over all other credentials.
                Some(query) => {
                    // An az:// URL does not name the account, so the account comes from the environment.
                    let of_environment = MicrosoftAzureBuilder::from_env();
                    let keys = [AzureConfigKey::AccountName, AzureConfigKey::Endpoint];
                    let known = keys.into_iter().filter(|_| account.is_none());
                    let known = known.filter_map(|key| Some((key, of_environment.get_config_value(&key)?)));
                    let builder = MicrosoftAzureBuilder::new().with_config(AzureConfigKey::SasKey, query);
                    known.fold(builder, |builder, (key, value)| builder.with_config(key, value))
                }
                None => MicrosoftAzureBuilder::from_env(),
            };
            builder = builder.with_http_connector(ToOneServer);
            builder = builder.with_container_name(container).with_retry(patience.retries());
            builder = account.iter().fold(builder, |builder, account| builder.with_account(account));
            let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
            if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
                builder = builder.with_allow_http(true);
            }
            let set = |builder: MicrosoftAzureBuilder, (key, value): (ClientConfigKey, String)| {
                builder.with_config(AzureConfigKey::Client(key), value)
            };
            Arc::new(connection().into_iter().fold(builder, set).build()?)
        }
        Place::Google { bucket } => {
            let builder = GoogleCloudStorageBuilder::from_env().with_http_connector(ToOneServer);
            let builder = builder.with_bucket_name(bucket).with_retry(patience.retries());
            let set = |builder: GoogleCloudStorageBuilder, (key, value): (ClientConfigKey, String)| {
                builder.with_config(GoogleConfigKey::Client(key), value)
            };
            Arc::new(connection().into_iter().fold(builder, set).build()?)
        }
        Place::Web => {
            let server = shown.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            let builder = HttpBuilder::new().with_url(server).with_retry(patience.retries());
            let builder = builder.with_config(ClientConfigKey::AllowHttp, "true");
            Arc::new(builder.with_http_connector(WholeUrl::new(settings.whole(shown), &settings.redirects)?).build()?)
        }
    })
}

/// Client settings with short time limits, for a request that may fail without harm.
fn brief() -> ClientOptions {
    ClientOptions::new().with_connect_timeout(Duration::from_secs(5)).with_timeout(Duration::from_secs(10))
}

/// Whether the settings contain credentials of an account, with which blobs on an Azure server can be read.
pub(crate) fn has_azure_account(shown: &str, settings: &Settings) -> bool {
    const VARIABLES: [&str; 8] = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_USE_AZURE_CLI",
    ];
    settings.query(shown).is_some() || VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}
