//! Settings from the user: the secrets of URLs, the memory limit, and allowed redirects.

use std::collections::BTreeMap;

/// The most bytes of objects to keep in memory, unless another limit is set.
pub const MOST_HELD_BYTES: u64 = 256 << 20;

/// Settings for reading objects.
#[derive(Clone)]
pub struct Settings {
    /// The URLs with their secrets. The keys are the same URLs without secrets, as they are shown to users.
    pub secrets: BTreeMap<String, String>,
    /// The most bytes of objects to keep in memory, in total.
    pub held_bytes: u64,
    /// Servers to which a web server may redirect requests.
    pub redirects: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { secrets: BTreeMap::new(), held_bytes: MOST_HELD_BYTES, redirects: Vec::new() }
    }
}

impl Settings {
    /// The URL with its secret, as the user gave it. A URL without a secret is returned unchanged.
    pub(crate) fn whole<'s>(&'s self, shown: &'s str) -> &'s str {
        self.secrets.get(shown).map_or(shown, String::as_str)
    }

    /// The query that grants access to `shown`: the URL's own query, or the query of a folder above it.
    pub(crate) fn query(&self, shown: &str) -> Option<&str> {
        let is_above = |folder: &str| {
            let rest = shown.strip_prefix(folder.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.secrets.iter().filter(|(folder, _)| is_above(folder)).max_by_key(|(folder, _)| folder.len());
        found.and_then(|(_, whole)| Some(whole.split_once('?')?.1.split('#').next().unwrap_or_default()))
    }

    /// All secrets: whole queries, the values in queries, and secrets in environment variables.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for whole in self.secrets.values() {
            if let Some((_, query)) = whole.split_once('?') {
                texts.push(query.to_owned());
                texts.extend(
                    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned()),
                );
            }
            let server = whole.split_once("://").map_or("", |(_, rest)| rest).split('/').next().unwrap_or_default();
            texts.extend(server.rsplit_once('@').map(|(who, _)| who.to_owned()));
        }
        let is_secret = |name: &str| {
            ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|start| name.starts_with(start))
                && ["KEY", "TOKEN", "SECRET", "SAS", "PASSWORD"].iter().any(|part| name.contains(part))
        };
        let variables = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_secret));
        texts.extend(variables.map(|(_, value)| value.to_string_lossy().into_owned()));
        // Short texts are not secrets, and they occur in ordinary words.
        texts.retain(|text| text.len() >= 8);
        // The longest secrets come first, because one secret may be a part of another.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_url_with_a_signature_is_read_with_it() {
        let folder = "https://acme.blob.core.windows.net/sql";
        let secrets = BTreeMap::from([(folder.to_owned(), format!("{folder}?sv=1&sig=abc"))]);
        let settings = Settings { secrets, ..Settings::default() };
        for url in [folder.to_owned(), format!("{folder}/x.bak"), format!("{folder}/2024/x.bak")] {
            assert_eq!(settings.query(&url), Some("sv=1&sig=abc"), "{url}");
        }
        assert_eq!(settings.query("https://acme.blob.core.windows.net/sql2/x.bak"), None);
    }
}
