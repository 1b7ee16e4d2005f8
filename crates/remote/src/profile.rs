//! Reads the files in which the AWS command-line tools keep keys and settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The settings in a profile.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Profile {
    pub(crate) key_id: Option<String>,
    pub(crate) secret: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or the default profile; empty if it does not exist.
    pub(crate) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from);
        let file = |name: &str, default: &str| {
            let path = variable(name).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".aws").join(default)));
            path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
        };
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        Self::of(&name, &file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &file("AWS_CONFIG_FILE", "config"))
    }

    fn of(name: &str, credentials: &str, config: &str) -> Self {
        let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let mut values = section(config, &in_config);
        values.extend(section(credentials, name));
        let mut take = |key: &str| values.remove(key).filter(|value| !value.is_empty());
        Self {
            key_id: take("aws_access_key_id"),
            secret: take("aws_secret_access_key"),
            token: take("aws_session_token"),
            region: take("region"),
            endpoint: take("endpoint_url"),
        }
    }
}

/// The settings in a section of an INI file, without nested settings.
fn section(text: &str, name: &str) -> BTreeMap<String, String> {
    let (mut values, mut is_inside) = (BTreeMap::new(), false);
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            is_inside = title.split_whitespace().eq(name.split_whitespace());
        } else if let (true, false, Some((key, value))) = (is_inside, is_nested, line.split_once('=')) {
            values.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = ONE\naws_secret_access_key=two==\n\n# later\n[backup]\naws_access_key_id=THREE\naws_secret_access_key = four\naws_session_token = five\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  max_concurrent_requests = 20\n  region = nowhere\n[profile  backup]\nregion=us-east-2\nendpoint_url = https://minio.example:9000\n";

    #[test]
    fn keys_and_region_are_those_of_the_profile() {
        let default = Profile::of("default", CREDENTIALS, CONFIG);
        assert_eq!((default.key_id.as_deref(), default.secret.as_deref()), (Some("ONE"), Some("two==")));
        assert_eq!((default.region.as_deref(), default.token), (Some("eu-west-1"), None));
        let backup = Profile::of("backup", CREDENTIALS, CONFIG);
        assert_eq!((backup.token.as_deref(), backup.region.as_deref()), (Some("five"), Some("us-east-2")));
        assert_eq!(backup.endpoint.as_deref(), Some("https://minio.example:9000"));
        assert!(Profile::of("none", CREDENTIALS, CONFIG) == Profile::default());
    }
}
