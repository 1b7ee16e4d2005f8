//! Handles URLs in the arguments. Removes the secrets from the URLs before any other code reads the arguments, so that
//! no other code can print a secret. Passes the complete URLs only to the code that reads object storage.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use jobs::failure::Failure;

/// Maximum number of bytes that are read from a file of links.
const MOST_LINK_BYTES: u64 = 1 << 20;

/// The supported schemes of URLs. To read URLs, the program must be built with object storage.
const SCHEMES: [&str; 5] = ["s3", "az", "gs", "https", "http"];

/// The environment variable that names a file of links, which has one link per line. The secrets in this file do not
/// appear in the arguments, which other users of the machine can see, or in a plan.
const LINKS: &str = "MDFSCK_SAS_FILE";
/// The environment variable that names servers to which a web server may redirect.
#[cfg(feature = "cloud")]
const REDIRECTS: &str = "MDFSCK_REDIRECT_TO";

/// The arguments without secrets, and the complete URLs.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) arguments: Vec<OsString>,
    /// The complete URLs that contain a secret. The key of each is the URL without its secret.
    pub(crate) secrets: BTreeMap<String, String>,
    /// All complete URLs. The key of each is the URL without its secret.
    names: BTreeMap<String, String>,
    /// Whether the arguments have a URL.
    pub(crate) has_urls: bool,
}

/// Removes the secrets from the arguments.
///
/// # Errors
/// A URL with an unknown scheme or with a user name; a file of links that cannot be used.
pub(crate) fn shown(arguments: Vec<OsString>) -> Result<Shown, Failure> {
    let mut shown = Shown::default();
    for argument in arguments {
        let taken = argument.to_str().and_then(|text| url_in(text)).map(|(before, url)| shown.take(before, url));
        shown.arguments.push(match taken {
            Some(taken) => taken?.into(),
            None => argument,
        });
    }
    if let Some(path) = std::env::var_os(LINKS).filter(|path| !path.is_empty()) {
        shown.take_links(Path::new(&path))?;
    }
    Ok(shown)
}

/// Splits an argument that contains a URL into two parts: the text before the URL, such as `--option=`, `-o` or blanks,
/// and the URL. Returns `None` if the argument contains no URL.
fn url_in(argument: &str) -> Option<(&str, &str)> {
    let scheme = argument.split_once("://")?.0;
    let start = match scheme.as_bytes() {
        [b'-', b'-', ..] => scheme.find('=')? + 1,
        [b'-', ..] => SCHEMES.iter().filter_map(|known| scheme.strip_suffix(known)).map(str::len).min()?,
        _ => scheme.len() - scheme.trim_start().len(),
    };
    let (before, url) = argument.split_at_checked(start)?;
    source::storage::url(url.as_ref()).map(|url| (before, url))
}

impl Shown {
    /// Reads a file of links, and adds the secrets in these links.
    fn take_links(&mut self, path: &Path) -> Result<(), Failure> {
        let cause = |cause| Failure::unable(format!("{}: {cause}; {LINKS} names it", path.display()));
        let (mut text, mut file) = (String::new(), File::open(path).map_err(cause)?.take(MOST_LINK_BYTES));
        file.read_to_string(&mut text).map_err(cause)?;
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let Some((_, url)) = url_in(line.trim()).filter(|(_, url)| url.contains('?')) else {
                let expected = "is not a URL with a query, such as https://HOST/PATH?QUERY";
                return Err(Failure::usage(format!("{}: line {number} {expected}", path.display())));
            };
            let plain = url.split('?').next().unwrap_or_default().to_owned();
            // If the same link is on the command line and in the file, the link on the command line is used.
            self.secrets.entry(plain).or_insert_with(|| url.to_owned());
        }
        Ok(())
    }

    fn take(&mut self, before: &str, url: &str) -> Result<String, Failure> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        // In names of S3 and Google Cloud objects, a question mark is a wildcard for one character. Only a signature
        // shows that a question mark begins a query.
        let is_query = match scheme {
            "s3" | "gs" => rest.contains("Signature="),
            "az" => rest.contains("sig="),
            _ => true,
        };
        let end = if is_query { rest.find(['?', '#']).unwrap_or(rest.len()) } else { rest.len() };
        let (plain, secret) = rest.split_at(end);
        let server = plain.split('/').next().unwrap_or_default();
        if server.contains('@') {
            let text = "the URL contains a user name: put credentials into the query of the URL, or into environment variables";
            return Err(Failure::usage(format!("{scheme}://...@...: {text}")));
        }
        let plain = format!("{scheme}://{plain}");
        if !SCHEMES.contains(&scheme) {
            let known = SCHEMES.map(|scheme| format!("{scheme}://")).join(", ");
            return Err(Failure::usage(format!("{plain}: this kind of URL is not supported; URLs begin with {known}")));
        }
        self.has_urls = true;
        // If another link differs from this link only in its query, adds a number to the name of this link.
        let numbered = (2..).map(|number| format!("{plain}#{number}"));
        let is_free = |name: &String| self.names.get(name).is_none_or(|known| known == url);
        let name = std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain);
        self.names.insert(name.clone(), url.to_owned());
        if !secret.is_empty() {
            self.secrets.insert(name.clone(), url.to_owned());
        }
        Ok(format!("{before}{name}"))
    }
}

/// Enables the reading of URLs.
///
/// # Errors
/// Never in this build. A build without object storage returns an error if there are URLs.
#[cfg(feature = "cloud")]
pub(crate) fn read(_: bool, secrets: BTreeMap<String, String>, held_bytes: Option<u64>) -> Result<(), Failure> {
    let held_bytes = held_bytes.unwrap_or(remote::MOST_HELD_BYTES);
    let allowed = std::env::var(REDIRECTS).unwrap_or_default();
    let redirects = allowed.split([',', ' ']).filter(|host| !host.is_empty()).map(str::to_owned).collect();
    source::storage::use_storage(Box::new(remote::Objects::new(remote::Settings { secrets, held_bytes, redirects })));
    Ok(())
}

/// Returns an error if the arguments contain URLs, since this program was built without object storage.
#[cfg(not(feature = "cloud"))]
pub(crate) fn read(has_urls: bool, _: BTreeMap<String, String>, _: Option<u64>) -> Result<(), Failure> {
    let text = "this mdfsck was built without object storage: copy the file, or build with 'cargo build --release --features cloud'";
    if has_urls { Err(Failure::usage(text)) } else { Ok(()) }
}

/// The part of the memory grant that the cache for the content of objects may use, in bytes.
pub(crate) fn share(granted: Option<u64>) -> Option<u64> {
    const BETWEEN: (u64, u64) = (4 << 20, 256 << 20);
    granted.map(|granted| (granted / 4).clamp(BETWEEN.0, BETWEEN.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> (Vec<String>, Vec<String>) {
        let shown = shown(arguments.iter().map(OsString::from).collect()).unwrap();
        let texts = shown.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        (texts, shown.secrets.into_values().collect())
    }

    #[test]
    fn queries_are_taken_out_of_every_argument() {
        let sas = "https://acme.blob.core.windows.net/sql/x.bak?sv=1&sig=SECRET";
        let (shown, secrets) = of(&[
            "mdfsck",
            "check",
            sas,
            "--output=https://h/o?sig=SECRET",
            "az://c/x.bak?sig=SECRET",
            "-ohttps://h/p?SECRET",
            " https://h/q?SECRET",
            "s3://b/k?X-Amz-Signature=SECRET",
        ]);
        assert!(!shown.join(" ").contains("SECRET"), "{shown:?}");
        assert_eq!(shown[2], "https://acme.blob.core.windows.net/sql/x.bak");
        assert_eq!(shown[3], "--output=https://h/o");
        assert!(secrets.contains(&sas.to_owned()) && secrets.len() == 6);
    }

    #[test]
    fn links_that_differ_in_their_queries_stay_two() {
        let (shown, secrets) = of(&["https://h/get?id=1", "https://h/get?id=2", "https://h/get?id=1"]);
        assert_eq!(shown, ["https://h/get", "https://h/get#2", "https://h/get"]);
        assert_eq!(secrets.len(), 2);
    }

    #[test]
    fn a_link_without_a_query_is_not_read_with_that_of_another() {
        let (shown, secrets) = of(&["https://h/get", "https://h/get?id=2"]);
        assert_eq!(shown, ["https://h/get", "https://h/get#2"]);
        assert_eq!(secrets, ["https://h/get?id=2"]);
    }

    #[test]
    fn what_is_no_url_stays_as_it_is() {
        let given = ["mdfsck", "sales?.bak", "--table=a?b", "s3://b/sales?.bak", r"\\server\share\x.bak", "C:/x?"];
        assert_eq!(of(&given).0, given);
    }

    #[test]
    fn a_password_and_a_scheme_that_is_not_read_are_refused_without_a_secret() {
        for (given, text) in [
            ("https://who:SECRET@host/x.bak?sig=SECRET", "https://...@...: the URL contains a user name"),
            (
                "ftp://host/x.bak?SECRET",
                "ftp://host/x.bak: this kind of URL is not supported; URLs begin with s3://, az://",
            ),
        ] {
            let failure = shown(vec![given.into()]).err().unwrap();
            assert!(failure.text.starts_with(text) && !failure.text.contains("SECRET"), "{}", failure.text);
            assert_eq!(failure.status, Failure::USAGE);
        }
    }
}
