//! Lists the backups in files, and decides whether each backup is complete. A backup is complete if its files have been
//! unchanged for the settle time, if no file ends too early, and if all its stripes exist.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use history::queue::{FileState, Found, Kind, Seen, of_file, of_set_in};
use jobs::inventory;
use source::storage;

use super::find::DataFiles;
use super::labels::{Labels, Set};

/// Whether a file has been unchanged for the time `settle`. `now` is in milliseconds since 1970. An object in object
/// storage always counts as settled, since it becomes visible only when it is complete.
pub(super) fn is_settled(state: &FileState, settle: Duration, now: i64) -> bool {
    let settle = i64::try_from(settle.as_millis()).unwrap_or(i64::MAX);
    storage::url(Path::new(&state.seen.path)).is_some() || now.saturating_sub(state.since) >= settle
}

/// The stripes that were found. The key is the number of a stripe; the value is the path and the size of its file.
type Stripes<'a> = BTreeMap<u16, (&'a str, u64)>;

/// A backup set, with the stripes that were found. Each copy of a set is a separate group. A verdict describes only the
/// bytes that were read, so it does not apply to another copy.
struct Group<'a> {
    /// The set, from the labels of the stripe that was found first.
    set: &'a Set,
    media_set: Option<&'a str>,
    stripes: u16,
    /// The files of the stripes that were found.
    files: Stripes<'a>,
    is_damaged: bool,
}

impl Group<'_> {
    /// The identity of the backup set in the queue. If the set is in a single file, its identity includes the path of
    /// the file. If the set is striped, its identity includes no path, since the stripes may be found at different
    /// times.
    fn identity(&self, copy: usize) -> String {
        let Set { position, guid, database, server, finished, bytes, .. } = self.set;
        let set = match guid {
            Some(guid) => format!("set {guid} {position}"),
            None => format!("set of {server} {database} {} {position}", finished.as_deref().unwrap_or_default()),
        };
        match (self.stripes, copy) {
            (1, _) => {
                let path = self.files.values().next().map_or("", |(path, _)| path);
                of_set_in(&format!("{set} {bytes}"), path)
            }
            // The total size is unknown until all stripes are found, so it is not part of the identity.
            (_, 0) => format!("{set} of {}", self.media_set.unwrap_or_default()),
            (_, copy) => format!("{set} of {} copy {copy}", self.media_set.unwrap_or_default()),
        }
    }

    fn paths(&self) -> Vec<String> {
        self.files.values().map(|(path, _)| (*path).to_owned()).collect()
    }

    fn lacks(&self) -> Option<String> {
        let missing: Vec<String> = (1..=self.stripes)
            .filter(|stripe| !self.files.contains_key(stripe))
            .map(|stripe| stripe.to_string())
            .collect();
        let found = usize::from(self.stripes).saturating_sub(missing.len());
        (!missing.is_empty())
            .then(|| format!("waits for stripes: {found} of {} found, missing: {}", self.stripes, missing.join(", ")))
    }
}

/// The backups in all files. `now` is in milliseconds since 1970.
pub(super) fn found(states: &[FileState], settle: Duration, now: i64) -> Vec<Found> {
    let mut unknown = Vec::new();
    let mut read: Vec<(&FileState, Labels)> = Vec::new();
    for state in states {
        let labels = state.labels.as_deref().and_then(|labels| serde_json::from_str(labels).ok());
        let has_name = inventory::has_backup_name(Path::new(&state.seen.path));
        match labels {
            _ if !is_settled(state, settle, now) => {
                if has_name || matches!(labels, Some(Labels::Backup(_) | Labels::Refused(_))) {
                    unknown.push(file(state, "is being written"));
                }
            }
            None if has_name => unknown.push(file(state, "cannot be read")),
            None | Some(Labels::Other) => {}
            Some(Labels::Lost(reason)) => unknown.push(file(state, &reason)),
            Some(Labels::Refused(reason)) => unknown.push(Found { is_refused: true, ..file(state, &reason) }),
            Some(labels) => read.push((state, labels)),
        }
    }
    let (groups, cut) = groups(&read);
    unknown.extend(cut.into_iter().map(|state| {
        file(state, "the file ends before the end of the backup: it is still being written, or was cut off")
    }));
    let mut all: Vec<Found> = groups.iter().map(|(key, group)| of_group(group, key.copy, &groups)).collect();
    all.extend(unknown);
    all
}

/// Identifies a backup set. The key contains the GUID of the set and the media set; a set without a GUID is identified
/// by server, database, time and size. The key also contains the set's position, and the number of the copy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    guid: &'a str,
    media_set: &'a str,
    rest: String,
    position: u16,
    copy: usize,
}

/// Groups the backup sets in the files. The files are sorted by path, so that stripes in the same folder are grouped
/// together even if another folder contains copies of all stripes.
fn groups<'a>(read: &'a [(&'a FileState, Labels)]) -> (BTreeMap<Key<'a>, Group<'a>>, Vec<&'a FileState>) {
    let (mut groups, mut cut): (BTreeMap<Key<'_>, Group<'_>>, Vec<&FileState>) = Default::default();
    let mut copies: BTreeMap<(Key<'_>, u16), usize> = BTreeMap::new();
    for (state, labels) in read {
        let Labels::Backup(media) = labels else { continue };
        if media.sets.iter().any(|set| set.is_cut) {
            cut.push(state);
        }
        for set in media.sets.iter().filter(|set| !set.is_cut) {
            let rest = match &set.guid {
                Some(_) if media.stripes > 1 => String::new(),
                // A set with the same GUID but a different size is a different backup.
                Some(_) => set.bytes.to_string(),
                None => format!("{} {} {:?} {}", set.server, set.database, set.finished, set.bytes),
            };
            let media_set = media.media_set.as_deref();
            let (guid, media_set_id) = (set.guid.as_deref().unwrap_or_default(), media_set.unwrap_or_default());
            let mut key = Key { guid, media_set: media_set_id, rest, position: set.position, copy: 0 };
            let copies = copies.entry((key.clone(), media.stripe)).or_insert(0);
            key.copy = std::mem::replace(copies, *copies + 1);
            let group = groups.entry(key).or_insert_with(|| Group {
                set,
                media_set,
                stripes: media.stripes.max(1),
                files: BTreeMap::new(),
                is_damaged: false,
            });
            group.is_damaged |= set.is_damaged;
            group.files.insert(media.stripe, (&state.seen.path, state.seen.size));
        }
    }
    // If only some stripes have copies, each group of copies is completed with the original files of the other stripes.
    let whole: Vec<(Key<'_>, Stripes<'_>, bool)> = groups
        .iter()
        .filter(|(key, _)| key.copy == 0)
        .map(|(key, group)| (key.clone(), group.files.clone(), group.is_damaged))
        .collect();
    for (mut key, files, is_damaged) in whole {
        for copy in 1.. {
            key.copy = copy;
            let Some(group) = groups.get_mut(&key) else { break };
            for (stripe, file) in &files {
                if !group.files.contains_key(stripe) {
                    group.files.insert(*stripe, *file);
                    group.is_damaged |= is_damaged;
                }
            }
        }
    }
    (groups, cut)
}

fn of_group(group: &Group<'_>, copy: usize, all: &BTreeMap<Key<'_>, Group<'_>>) -> Found {
    let set = group.set;
    let mut waits_for = group.lacks();
    let mut base = Vec::new();
    if set.kind() == Kind::Differential {
        match base_of(set, all) {
            Some(full) => base = full.paths(),
            None => waits_for = waits_for.or_else(|| Some("waits for the full backup that it is based on".to_owned())),
        }
    }
    Found {
        identity: group.identity(copy),
        family: history::family_of(set.family.as_deref(), &set.database, (&set.server, &set.database)),
        server: set.server.clone(),
        name: set.database.clone(),
        kind: set.kind(),
        taken_at: set.finished.clone(),
        paths: group.paths(),
        set_guid: set.guid.clone(),
        position: set.position,
        size: group.files.values().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size)),
        has_checksums: set.has_checksums,
        is_damaged: group.is_damaged,
        base,
        waits_for,
        is_refused: false,
    }
}

/// The full backup on which a differential is based. Returns `None` if any stripe of the full backup is missing.
fn base_of<'a>(set: &Set, all: &'a BTreeMap<Key<'_>, Group<'a>>) -> Option<&'a Group<'a>> {
    let is_base = |full: &&Group<'_>| {
        let is_of_guid = set.base.is_some() && set.base == full.set.guid;
        let is_of_lsn = set.base_lsn.is_some() && set.base_lsn == full.set.checkpoint && set.family == full.set.family;
        full.set.kind() == Kind::Full && full.lacks().is_none() && (is_of_guid || set.base.is_none() && is_of_lsn)
    };
    all.values().find(is_base)
}

/// The entry in the queue for a file whose content is unknown.
fn file(state: &FileState, reason: &str) -> Found {
    let Seen { path, size, .. } = &state.seen;
    Found {
        size: *size,
        waits_for: Some(reason.to_owned()),
        ..unnamed(of_file(path), vec![path.clone()], Kind::Unknown)
    }
}

fn unnamed(identity: String, paths: Vec<String>, kind: Kind) -> Found {
    Found {
        identity,
        family: String::new(),
        server: String::new(),
        name: String::new(),
        kind,
        taken_at: None,
        paths,
        set_guid: None,
        position: 0,
        size: 0,
        has_checksums: true,
        is_damaged: false,
        base: Vec::new(),
        waits_for: None,
        is_refused: false,
    }
}

/// The databases whose data files are named in a list. Each state of the data files counts as a separate backup.
pub(super) fn data(listed: &[DataFiles], states: &[FileState], settle: Duration, now: i64) -> Vec<Found> {
    let states: HashMap<&str, &FileState> = states.iter().map(|state| (state.seen.path.as_str(), state)).collect();
    let one = |data: &DataFiles| {
        let files: Vec<&&FileState> = data.files.iter().filter_map(|path| states.get(path.as_str())).collect();
        let versions: Vec<String> =
            files.iter().map(|state| format!("{} {}", state.seen.size, state.seen.version)).collect();
        let is_still = files.iter().all(|state| is_settled(state, settle, now));
        let waits_for = match () {
            () if files.len() < data.files.len() || files.is_empty() => Some("some of its data files are missing"),
            () if !is_still => Some("its data files are being written"),
            () => None,
        };
        let identity = match waits_for {
            None => format!("data {} {}", data.name, versions.join(" ")),
            Some(_) => of_file(&data.name),
        };
        Found {
            family: data.name.clone(),
            name: data.name.clone(),
            size: files.iter().fold(0, |sum: u64, state| sum.saturating_add(state.seen.size)),
            waits_for: waits_for.map(str::to_owned),
            ..unnamed(identity, data.files.clone(), Kind::Data)
        }
    };
    listed.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::labels::Media;
    use super::*;

    const SETTLE: Duration = Duration::from_secs(60);

    fn state(path: &str, since: i64, labels: &Labels) -> FileState {
        let seen = Seen { path: path.to_owned(), size: 1000, version: "1".to_owned() };
        FileState {
            seen,
            first_seen: 0,
            since,
            labels: Some(serde_json::to_string(labels).unwrap()),
            fingerprint: None,
        }
    }

    fn backup(path: &str, guid: &str, stripe: (u16, u16)) -> FileState {
        state(path, 0, &Labels::Backup(Media::example(guid, stripe, false)))
    }

    /// For each backup: its kind, the number of its files, and the reason why it is waiting.
    fn looked(states: &[FileState], now: i64) -> Vec<(Kind, usize, Option<String>)> {
        found(states, SETTLE, now).into_iter().map(|found| (found.kind, found.paths.len(), found.waits_for)).collect()
    }

    #[test]
    fn a_file_is_whole_only_after_it_stood_still() {
        let file = backup("a.bak", "A", (1, 1));
        let alone = std::slice::from_ref(&file);
        assert_eq!(looked(alone, 59_999), [(Kind::Unknown, 1, Some("is being written".to_owned()))]);
        assert_eq!(looked(alone, 60_000), [(Kind::Full, 1, None)]);
        let object = FileState { seen: Seen { path: "s3://b/a.bak".to_owned(), ..file.seen.clone() }, ..file };
        assert_eq!(looked(&[object], 1), [(Kind::Full, 1, None)], "an object is there whole or not at all");
    }

    #[test]
    fn a_backup_without_its_end_is_not_known_yet() {
        let cut = state("a.bak", 0, &Labels::Backup(Media::example("A", (1, 1), true)));
        let found = looked(&[cut, state("b.bak", 0, &Labels::Lost("is empty".to_owned()))], 60_000);
        assert!(found.iter().all(|(kind, _, reason)| *kind == Kind::Unknown && reason.is_some()) && found.len() == 2);
        assert!(looked(&[state("a.txt", 0, &Labels::Other)], 60_000).is_empty());
    }

    #[test]
    fn a_backup_in_stripes_waits_for_all_of_them_and_stays_the_same_backup() {
        let stripes = [backup("1.bak", "A", (1, 3)), backup("2.bak", "A", (2, 3)), backup("3.bak", "A", (3, 3))];
        let identity = |states: &[FileState]| found(states, SETTLE, 60_000)[0].identity.clone();
        let waiting = looked(&stripes[1..], 60_000);
        let expected = "waits for stripes: 2 of 3 found, missing: 1".to_owned();
        assert_eq!(waiting, [(Kind::Full, 2, Some(expected))]);
        assert_eq!(looked(&stripes, 60_000), [(Kind::Full, 3, None)]);
        assert_eq!(identity(&stripes[1..]), identity(&stripes));
        let copy = backup("copy.bak", "A", (2, 3));
        let with_copy = found(&[&stripes[..], &[copy]].concat(), SETTLE, 60_000);
        let paths: Vec<String> = with_copy.iter().map(|found| found.paths.join(" ")).collect();
        assert_eq!(paths, ["1.bak 2.bak 3.bak", "1.bak copy.bak 3.bak"], "a copy has a verdict of its own");
        assert_ne!(with_copy[0].identity, with_copy[1].identity);
    }

    #[test]
    fn a_copy_is_another_backup_and_so_is_another_set_in_the_same_file() {
        let identity =
            |path: &str, guid: &str| found(&[backup(path, guid, (1, 1))], SETTLE, 60_000)[0].identity.clone();
        assert_ne!(identity("a.bak", "A"), identity("b.bak", "A"));
        let both = [backup("a.bak", "A", (1, 1)), backup("b.bak", "A", (1, 1))];
        let all = found(&both, SETTLE, 60_000);
        assert_eq!(
            all.iter().map(|found| found.identity.clone()).collect::<Vec<_>>(),
            [identity("a.bak", "A"), identity("b.bak", "A")]
        );
        assert_ne!(identity("a.bak", "A"), identity("a.bak", "B"));
    }

    #[test]
    fn a_differential_waits_for_its_full_backup() {
        let differential = state("d.bak", 0, &Labels::Backup(Media::example("D", (1, 1), false).based_on("A")));
        let waits = |states: &[FileState]| {
            let all = found(states, SETTLE, 60_000);
            all.into_iter()
                .find(|found| found.kind == Kind::Differential)
                .map(|found| (found.base, found.waits_for))
                .unwrap()
        };
        assert!(waits(&[differential.clone(), backup("b.bak", "B", (1, 1))]).1.is_some());
        assert!(waits(&[differential.clone(), backup("1.bak", "A", (1, 2))]).1.is_some(), "a stripe is missing");
        assert_eq!(waits(&[differential, backup("a.bak", "A", (1, 1))]), (vec!["a.bak".to_owned()], None));
    }

    #[test]
    fn data_files_that_changed_are_another_state() {
        let listed = [DataFiles { name: "Sales".to_owned(), files: vec!["s.mdf".to_owned()] }];
        let file = |version: &str, since: i64| FileState {
            seen: Seen { path: "s.mdf".to_owned(), size: 5, version: version.to_owned() },
            first_seen: 0,
            since,
            labels: None,
            fingerprint: None,
        };
        let one = |states: &[FileState]| data(&listed, states, SETTLE, 60_000).remove(0);
        assert!(one(&[]).waits_for.is_some() && one(&[file("1", 1)]).waits_for.is_some());
        assert_eq!(one(&[file("1", 0)]).waits_for, None);
        assert_ne!(one(&[file("1", 0)]).identity, one(&[file("2", 0)]).identity);
    }
}
