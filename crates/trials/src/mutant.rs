//! A database with damage, and what is known of it.

use std::collections::BTreeSet;

use format::page::PAGE_BYTES;
use format::{PageBytes, PageId};
use source::{MemoryFiles, OpenError};
use trials::mutate::Random;

use crate::subject::{Content, Subject};

/// A database with damage.
pub(crate) struct Mutant {
    /// What was done: the field, the fault.
    pub(crate) kind: String,
    /// Place and values, for people.
    pub(crate) what: String,
    /// Why nothing need be noticed; `None` of damage that must be.
    pub(crate) harmless: Option<String>,
    /// What changed is as it was at an earlier time.
    pub(crate) is_older: bool,
    pub(crate) damage: Damage,
}

/// What is there now.
pub(crate) enum Damage {
    /// One other page.
    Page(PageId, Box<PageBytes>),
    /// Other files.
    Files(Vec<Content>),
}

impl Mutant {
    /// The files in memory.
    pub(crate) fn files(&self, subject: &Subject) -> Result<MemoryFiles, OpenError> {
        match &self.damage {
            Damage::Page(page, bytes) => subject.files.with_pages([(*page, **bytes)]),
            Damage::Files(contents) => MemoryFiles::open(contents.clone()),
        }
    }

    /// The files as bytes.
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

    /// The one page that is damaged, if it is one.
    pub(crate) fn page(&self) -> Option<PageId> {
        match &self.damage {
            Damage::Page(page, _) => Some(*page),
            Damage::Files(_) => None,
        }
    }

    /// The same as a set; empty of damage to files.
    pub(crate) fn pages(&self) -> BTreeSet<PageId> {
        self.page().into_iter().collect()
    }
}

/// Draws until there is damage: what changes nothing is none.
pub(crate) fn drawn(random: &mut Random, mut damage: impl FnMut(&mut Random) -> Option<Mutant>) -> Mutant {
    loop {
        if let Some(mutant) = damage(random) {
            return mutant;
        }
    }
}
