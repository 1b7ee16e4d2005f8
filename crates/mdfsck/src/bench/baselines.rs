//! Where named results are saved: in a history, or as files in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use history::History;
use jobs::failure::Failure;

use super::results::{self, Results};
use crate::output::Target;

/// The folder for baselines, below the current folder.
const FOLDER: &str = ".mdfsck-bench";

/// Where baselines are saved.
pub(super) enum Place<'a> {
    Folder,
    History(&'a Path),
}

/// Where to save the results of this run.
pub(super) enum Saved<'a> {
    File(Target),
    History(&'a Path, String),
}

impl<'a> Place<'a> {
    /// The history, if one is given; otherwise the folder for baselines.
    pub(super) fn of(history: Option<&'a Path>) -> Self {
        history.map_or(Self::Folder, Self::History)
    }

    /// The target for results that are saved under `name`.
    pub(super) fn target(&self, name: &str) -> Result<Saved<'a>, Failure> {
        let path = path(name)?;
        match self {
            Self::History(history) => {
                History::open_or_create(history).map_err(|error| Failure::from(&error))?;
                Ok(Saved::History(history, name.to_owned()))
            }
            Self::Folder => {
                fs::create_dir_all(FOLDER)
                    .map_err(|error| Failure::unable(format!("{FOLDER}: cannot be created: {error}")))?;
                Target::at(&path).map(Saved::File)
            }
        }
    }

    /// Loads the results that were saved under `name`.
    pub(super) fn load(&self, name: &str) -> Result<Results, Failure> {
        let path = path(name)?;
        let missing = |place: &str, cause: &str| {
            Failure::usage(format!("{place}: no such baseline{cause}; save one with --save {name}"))
        };
        let (place, text) = match self {
            Self::History(history) => {
                let place = format!("{}: {name}", history.display());
                let opened = History::open(history).map_err(|error| Failure::from(&error))?;
                let found = opened.baseline(name).map_err(|error| Failure::from(&error))?;
                let text = found.ok_or_else(|| missing(&place, ""))?;
                (place, text)
            }
            Self::Folder => {
                let place = path.display().to_string();
                let text = fs::read_to_string(&path).map_err(|cause| missing(&place, &format!(" ({cause})")))?;
                (place, text)
            }
        };
        results::read(&text).map_err(|cause| {
            Failure::usage(format!("{place}: the baseline cannot be read ({cause}); save it again with --save {name}"))
        })
    }
}

impl Saved<'_> {
    /// Saves the results as a file or in the history.
    pub(super) fn write(self, results: &Results) -> Result<(), Failure> {
        let text = results.json()?;
        match self {
            Self::File(target) => target.write(|out| out.write_all(text.as_bytes())),
            Self::History(history, name) => {
                let saved = History::open_or_create(history).and_then(|mut opened| opened.save_baseline(&name, &text));
                saved.map_err(|error| Failure::from(&error))
            }
        }
    }
}

fn path(name: &str) -> Result<PathBuf, Failure> {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) && name != "..";
    if !is_plain {
        return Err(Failure::usage(format!(
            "{name}: the name of a baseline may have only letters, digits, '-', '_' and '.'"
        )));
    }
    Ok(Path::new(FOLDER).join(format!("{name}.json")))
}
