//! The matrix: each configuration with each degree of parallelism, memory grant and cache state.

use jobs::size;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A configuration of the check: a name, and the options of `mdfsck check` that the name selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Configuration {
    /// The configuration's name on the command line and in results.
    pub(crate) name: &'static str,
    /// The options of `mdfsck check` for this configuration.
    pub(crate) options: &'static [&'static str],
}

/// All configurations. Published articles measure CHECKDB in the same configurations. A full check and a PHYSICAL_ONLY
/// check each have four configurations: the default, several batches (trace flag 2562), dedicated readers for each file
/// (trace flag 2549), and several batches with dedicated readers.
pub(crate) const CONFIGURATIONS: [Configuration; 8] = [
    Configuration { name: "full", options: &[] },
    Configuration { name: "full/batches", options: &["--batches", "4"] },
    Configuration { name: "full/per-file", options: &["--readers", "per-file"] },
    Configuration { name: "full/both", options: &["--batches", "4", "--readers", "per-file"] },
    Configuration { name: "physical", options: &["--physical-only"] },
    Configuration { name: "physical/batches", options: &["--physical-only", "--batches", "4"] },
    Configuration { name: "physical/per-file", options: &["--physical-only", "--readers", "per-file"] },
    Configuration { name: "physical/both", options: &["--physical-only", "--batches", "4", "--readers", "per-file"] },
];

/// Whether the files are in the operating system's cache before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    /// The files are in the cache.
    Warm,
    /// The files were dropped from the cache before each run.
    Cold,
}

impl Cache {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// One cell of the matrix: a combination of configuration, degree of parallelism, memory grant and cache state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) configuration: Configuration,
    pub(crate) maxdop: u16,
    /// Memory grant in bytes; `None` for the default grant.
    pub(crate) memory: Option<u64>,
    pub(crate) cache: Cache,
}

/// Serializes a configuration as its name.
impl Serialize for Configuration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Configuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        configuration(&name).map_err(|error| D::Error::custom(format!("{name}: {error}")))
    }
}

impl Configuration {
    /// Whether the check has the option PHYSICAL_ONLY.
    pub(crate) fn is_physical(self) -> bool {
        self.name.starts_with("physical")
    }
}

impl Cell {
    /// The name of the cell in results and baselines.
    pub(crate) fn name(&self) -> String {
        let (memory, cache) = (self.memory_text(), self.cache.name());
        format!("{} dop {} memory {memory} {cache}", self.configuration.name, self.maxdop)
    }

    /// The memory grant as text.
    pub(crate) fn memory_text(&self) -> String {
        self.memory.map_or_else(|| "default".to_owned(), size::text)
    }

    /// Arguments of `mdfsck check`, without the files.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = vec!["check".into(), "--format".into(), "json".into()];
        arguments.extend(["--maxdop".to_owned(), self.maxdop.to_string()]);
        arguments.extend(self.configuration.options.iter().map(|option| (*option).to_owned()));
        if let Some(memory) = self.memory {
            arguments.extend(["--memory".to_owned(), memory.to_string()]);
        }
        arguments
    }
}

/// Parses the name of a configuration.
pub(crate) fn configuration(text: &str) -> Result<Configuration, String> {
    let names: Vec<&str> = CONFIGURATIONS.iter().map(|configuration| configuration.name).collect();
    let found = CONFIGURATIONS.iter().find(|configuration| configuration.name == text);
    found.copied().ok_or_else(|| format!("not one of {}", names.join(", ")))
}
