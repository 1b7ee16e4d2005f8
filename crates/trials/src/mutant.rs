//! A damaged database, with the truth about its damage.

use std::collections::BTreeSet;

use format::page::PAGE_BYTES;
use format::{PageBytes, PageId};
use source::{MemoryFiles, OpenError};
use trials::mutate::Random;

use crate::subject::{Content, Subject};

/// A database with damage.
pub(crate) struct Mutant {
    /// The kind of damage: the changed field, or the fault.
    pub(crate) kind: String,
    /// Place and values of the damage, for human readers.
    pub(crate) what: String,
    /// The reason why the damage may go unnoticed; `None` if it must be noticed.
    pub(crate) harmless: Option<String>,
    /// Whether the damaged bytes are an earlier content of the same page or file.
    pub(crate) is_older: bool,
    pub(crate) damage: Damage,
}

/// The damaged content.
pub(crate) enum Damage {
    /// One page with new content.
    Page(PageId, Box<PageBytes>),
    /// Files with new content.
    Files(Vec<Content>),
}

impl Mutant {
    /// Opens the damaged files in memory.
    pub(crate) fn files(&self, subject: &Subject) -> Result<MemoryFiles, OpenError> {
        match &self.damage {
            Damage::Page(page, bytes) => subject.files.with_pages([(*page, **bytes)]),
            Damage::Files(contents) => MemoryFiles::open(contents.clone()),
        }
    }

    /// The damaged files as bytes.
    pub(crate) fn contents(&self, subject: &Subject) -> Vec<Content> {
        match &self.damage {
            Damage::Page(page, bytes) => {
                let mut contents = subject.contents.clone();
                let path = subject.files.path(page.file);
                let at = page.page as usize * PAGE_BYTES;
                let content = contents.iter_mut().find(|(own, _)| Some(own.as_path()) == path);
                if let Some(place) = content.and_then(|(_, content)| content.get_mut(at..at + PAGE_BYTES)) {
                    place.copy_from_slice(&**bytes);
                }
                contents
            }
            Damage::Files(contents) => contents.clone(),
        }
    }

    /// The damaged page; `None` if the damage is to whole files.
    pub(crate) fn page(&self) -> Option<PageId> {
        match &self.damage {
            Damage::Page(page, _) => Some(*page),
            Damage::Files(_) => None,
        }
    }

    /// The damaged page as a set; empty if the damage is to whole files.
    pub(crate) fn pages(&self) -> BTreeSet<PageId> {
        self.page().into_iter().collect()
    }
}

/// Calls `damage` until it returns a mutant. `damage` returns `None` if its random choice would change nothing.
pub(crate) fn drawn(random: &mut Random, mut damage: impl FnMut(&mut Random) -> Option<Mutant>) -> Mutant {
    loop {
        if let Some(mutant) = damage(random) {
            return mutant;
        }
    }
}
