//! Parses a URL into the storage and the name of an object in the storage.

/// The schemes of URLs that can be read.
pub const SCHEMES: [&str; 5] = ["s3", "az", "gs", "https", "http"];

/// Whether a URL has one of the [`SCHEMES`].
pub fn is_known(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// A bucket or container, or a web server with one object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    /// Amazon S3, or a compatible server.
    S3 { endpoint: Option<String>, region: Option<String>, bucket: String },
    /// Azure Blob Storage; the account may come from the environment.
    Azure { account: Option<String>, container: String },
    /// Google Cloud Storage.
    Google { bucket: String },
    /// One object on any web server.
    Web,
}

/// An object, or a common prefix of the names of several objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) place: Place,
    /// The name of the object, or the common prefix of names, without slashes at the end. For a web server, the whole
    /// URL.
    pub(crate) key: String,
    /// Whether the URL ends with a slash or names a whole bucket. Such a URL is a folder, even if it contains nothing.
    pub(crate) is_folder: bool,
}

/// The suffixes of host names of Azure Blob Storage.
const AZURE_HOSTS: [&str; 1] = [".blob.core.windows.net"];
const AMAZON_HOST: &str = ".amazonaws.com";

impl Location {
    /// Parses a URL without its secrets. `is_azure` says whether the settings contain credentials of an Azure account.
    /// With such credentials, a blob on an Azure server can be read, and its container can be listed.
    ///
    /// # Errors
    ///
    /// A message that says what is wrong with the URL, and shows the right form.
    pub(crate) fn of(url: &str, is_azure: bool) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(format!("the URL names no server or bucket; expected {scheme}://NAME/..."));
        }
        match scheme {
            "s3" => Self::of_s3(host, path),
            "az" => Ok(Self::new(Place::Azure { account: None, container: host.to_owned() }, path)),
            "gs" => Ok(Self::new(Place::Google { bucket: host.to_owned() }, path)),
            "https" | "http" => {
                let account = AZURE_HOSTS.iter().find_map(|end| host.strip_suffix(end));
                match account.filter(|_| is_azure && scheme == "https") {
                    Some(account) => {
                        let (container, key) = path.split_once('/').unwrap_or((path, ""));
                        let place = Place::Azure { account: Some(account.to_owned()), container: decoded(container) };
                        Ok(Self::new(place, &decoded(key)))
                    }
                    None => Ok(Self { place: Place::Web, key: url.to_owned(), is_folder: false }),
                }
            }
            _ => Err(format!("{scheme} is not a supported kind of storage; URLs begin with {}", listed())),
        }
    }

    /// `s3://BUCKET/KEY`, and SQL Server's forms: `s3://HOST:PORT/BUCKET/KEY`,
    /// `s3://BUCKET.s3.REGION.amazonaws.com/KEY`, `s3://s3.REGION.amazonaws.com/BUCKET/KEY`.
    fn of_s3(host: &str, path: &str) -> Result<Self, String> {
        let place = |endpoint, region, bucket: &str| Place::S3 { endpoint, region, bucket: bucket.to_owned() };
        if let Some(name) = host.strip_suffix(AMAZON_HOST) {
            let (bucket, region) = name.split_once("s3.").or_else(|| name.split_once("s3-")).unwrap_or((name, ""));
            let region = Some(region.to_owned()).filter(|region| !region.is_empty());
            if let Some(bucket) = bucket.strip_suffix('.') {
                return Ok(Self::new(place(None, region, bucket), path));
            }
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            return Self::with_bucket(place(None, region, bucket), bucket, key);
        }
        if host.contains(':') {
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            return Self::with_bucket(place(Some(format!("https://{host}")), None, bucket), bucket, key);
        }
        Ok(Self::new(place(None, None, host), path))
    }

    fn with_bucket(place: Place, bucket: &str, key: &str) -> Result<Self, String> {
        match bucket.is_empty() {
            true => Err("the URL names a server but no bucket; expected s3://SERVER/BUCKET/...".to_owned()),
            false => Ok(Self::new(place, key)),
        }
    }

    fn new(place: Place, path: &str) -> Self {
        let key = path.trim_end_matches('/');
        Self { place, key: key.to_owned(), is_folder: key.is_empty() || path.ends_with('/') }
    }

    /// Returns the URL of the entry `key` in this folder. `folder` is the URL of this folder.
    pub(crate) fn url_of(&self, folder: &str, key: &str) -> String {
        let below = key.strip_prefix(&self.key).unwrap_or(key).trim_start_matches('/');
        // Names in web URLs are percent-encoded.
        let is_web = folder.starts_with("http");
        let below = if is_web { encoded(below) } else { below.to_owned() };
        format!("{}/{below}", folder.trim_end_matches('/'))
    }
}

/// The list of schemes as text for messages.
fn listed() -> String {
    SCHEMES.map(|scheme| format!("{scheme}://")).join(", ")
}

/// Decodes percent-encoded characters in a part of a URL.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Percent-encodes a name for a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Location {
        Location::of(url, true).unwrap()
    }

    #[test]
    fn urls_are_those_of_sql_server_and_of_the_storage_itself() {
        let s3 = |endpoint: Option<&str>, region: Option<&str>, bucket: &str| Place::S3 {
            endpoint: endpoint.map(str::to_owned),
            region: region.map(str::to_owned),
            bucket: bucket.to_owned(),
        };
        for (url, place, key) in [
            ("s3://backups/a/b.bak", s3(None, None, "backups"), "a/b.bak"),
            ("s3://10.0.0.5:9000/backups/b.bak", s3(Some("https://10.0.0.5:9000"), None, "backups"), "b.bak"),
            ("s3://s3.eu-west-1.amazonaws.com/backups/b.bak", s3(None, Some("eu-west-1"), "backups"), "b.bak"),
            ("s3://backups.s3.eu-west-1.amazonaws.com/b.bak", s3(None, Some("eu-west-1"), "backups"), "b.bak"),
            ("az://sql/b.bak", Place::Azure { account: None, container: "sql".into() }, "b.bak"),
            (
                "https://acme.blob.core.windows.net/sql/a%20b.bak",
                Place::Azure { account: Some("acme".into()), container: "sql".into() },
                "a b.bak",
            ),
            ("gs://backups/b.bak", Place::Google { bucket: "backups".into() }, "b.bak"),
            ("https://example.com/b.bak", Place::Web, "https://example.com/b.bak"),
        ] {
            assert_eq!(of(url), Location { place, key: key.to_owned(), is_folder: false }, "{url}");
        }
        assert_eq!(Location::of("https://acme.blob.core.windows.net/sql/b.bak", false).unwrap().place, Place::Web);
    }

    #[test]
    fn a_bucket_and_a_name_that_ends_with_a_slash_are_folders() {
        for url in ["s3://backups", "s3://backups/", "s3://backups/2024/", "https://acme.blob.core.windows.net/sql"] {
            assert!(of(url).is_folder, "{url}");
        }
        assert!(!of("s3://backups/2024").is_folder);
    }

    #[test]
    fn a_name_that_was_found_is_a_url_again() {
        for (folder, key, url) in [
            ("s3://backups/2024", "2024/a b.bak", "s3://backups/2024/a b.bak"),
            ("s3://backups/", "x.bak", "s3://backups/x.bak"),
            ("s3://h:9000/backups/2024/", "2024/x.bak", "s3://h:9000/backups/2024/x.bak"),
            (
                "https://acme.blob.core.windows.net/sql/d",
                "d/a b.bak",
                "https://acme.blob.core.windows.net/sql/d/a%20b.bak",
            ),
        ] {
            assert_eq!(of(folder).url_of(folder, key), url);
            assert_eq!(of(url).key, key, "{url}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_storage_is_refused_with_the_way_it_is_meant() {
        for (url, text) in [
            (
                "ftp://host/x.bak",
                "ftp is not a supported kind of storage; URLs begin with s3://, az://, gs://, https://, http://",
            ),
            ("s3:///x.bak", "the URL names no server or bucket; expected s3://NAME/..."),
            ("s3://host:9000/", "the URL names a server but no bucket; expected s3://SERVER/BUCKET/..."),
        ] {
            assert_eq!(Location::of(url, true).unwrap_err(), text);
        }
    }
}
