//! Writing a ledger anew without what is no longer used.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::PoisonError;

use check::change::{KeptGroup, Ledger as _, Part, Piece};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Ledger;
use super::contents::{Head, span};
use crate::error::PartsError;

impl<B: Serialize + DeserializeOwned + Sync + Send + Clone> Ledger<B> {
    /// Writes a ledger anew without the parts that parts of later runs have replaced.
    ///
    /// # Errors
    /// If the ledger cannot be opened, read or written. It remains as it was then.
    pub fn compact(path: &Path, build: &str) -> Result<(), PartsError> {
        let former: Self = Self::open(path, build)?;
        let Head { build, key, range_pages, base, note, .. } = former.head.clone();
        let mut compact: Self = Self::create(path, &build, range_pages, base, u64::MAX)?;
        (compact.head.key, compact.head.note) = (key, note);
        let unreadable = |cause: io::Error| PartsError::unreadable(path)(cause);
        // One bit for each range, 64 ranges in a word.
        let mut latest = BTreeMap::<(u16, u32), u64>::new();
        // A later run finds the runs in the same order: the latest is written last.
        let mut runs = Vec::new();
        for run in former.head.runs.iter().rev() {
            let mut wanted = Vec::new();
            let each = former.each_of(run, |group| {
                for key in group.keys() {
                    let at = key.range.first / range_pages.max(1);
                    let word = latest.entry((key.range.file_id, at / 64)).or_default();
                    wanted.push(*word & (1 << (at % 64)) == 0);
                    *word |= 1 << (at % 64);
                }
                Ok(())
            });
            each.map_err(unreadable)?;
            runs.push((run, wanted));
        }
        for (run, wanted) in runs.into_iter().rev().filter(|(_, wanted)| wanted.contains(&true)) {
            let mut file = &former.file;
            compact.begin(&span(&mut file, run.names).map_err(unreadable)?);
            let mut wanted = wanted.into_iter();
            let each = former.each_of(run, |group| {
                let kept: Vec<bool> = wanted.by_ref().take(group.keys().len()).collect();
                let mut parts = Vec::new();
                for (at, key) in group.keys().to_vec().into_iter().enumerate() {
                    if kept.get(at) == Some(&true) {
                        let (sums, bounds) = (group.read(Piece::Sums(at))?, group.read(Piece::Bounds(at))?);
                        let extents = group.read(Piece::Extents(at))?;
                        parts.push(Part { key, sums, bounds, extents });
                    }
                }
                if parts.len() == kept.len() {
                    compact.keep(&parts, &group.read(Piece::All)?);
                } else {
                    // The merged sums of the group are those of all of its parts.
                    parts.iter().for_each(|part| compact.keep(std::slice::from_ref(part), &[]));
                }
                Ok(())
            });
            each.map_err(unreadable)?;
            let mut writer = compact.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.add((path, &compact.head, None), (&run.image, &run.read_at), None)?;
        }
        let seen = former.seen()?;
        let mut file = &former.file;
        let opened = span(&mut file, former.head.opened).map_err(unreadable)?;
        drop(former);
        let mut writer = compact.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.opened = opened.get(16..).map(<[u8]>::to_vec);
        writer.add((path, &compact.head, None), ("", ""), Some(&seen))?;
        writer.put_in_place(path)
    }
}
