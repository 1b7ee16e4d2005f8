//! Decides which backups are checked, in which order, and when.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::time::Duration;

use history::queue::{Item, Kind};
use history::time;

const MINUTES_PER_DAY: u16 = 24 * 60;

/// The rule that decides which backups of a database are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// Check every backup.
    All,
    /// Check only the newest full backup.
    Newest,
    /// Check one backup of each database. Check the next backup of the database after this time has passed since the
    /// last check.
    Sample(Duration),
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("sample:")) {
            ("all", _) => Ok(Self::All),
            ("newest", _) => Ok(Self::Newest),
            (_, Some(span)) => time::span(span).map(Self::Sample),
            _ => Err("expected all, newest or sample:SPAN, such as sample:7d".to_owned()),
        }
    }
}

/// A span of the day. It may begin before midnight and end after midnight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct During {
    from: u16,
    to: u16,
}

impl FromStr for During {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = (hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?);
            let is_time = is_number(hour) && is_number(minute) && parsed.0 <= 24 && parsed.1 < 60;
            Some(parsed.0 * 60 + parsed.1).filter(|minutes| is_time && *minutes <= MINUTES_PER_DAY)
        };
        let parsed = text.split_once('-').and_then(|(from, to)| Some(Self { from: minute(from)?, to: minute(to)? }));
        parsed
            .filter(|during| during.from != during.to)
            .ok_or_else(|| "expected two times of day, such as 22:00-05:30".to_owned())
    }
}

impl During {
    /// Whether a minute of the day is in this span.
    pub(crate) fn has(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

/// Returns the IDs of the backups to skip, with the reasons. `checked` has the time at which the last full check of
/// each database ended. A family is a database and all databases restored from its backups. If `are_replicas`, a family
/// counts as one database, even if its databases have different servers or names.
pub(crate) fn left_out(
    (policy, are_replicas): (Policy, bool),
    queued: &[Item],
    known: &[Item],
    checked: &HashMap<String, String>,
    now: &str,
) -> Vec<(i64, String)> {
    let ready = || queued.iter().filter(|item| item.state == "ready" && item.found.kind != Kind::Data);
    match policy {
        Policy::All => Vec::new(),
        Policy::Newest => {
            // Backups that are incomplete or were already checked are included in the search for the newest backup.
            // Otherwise an older backup would count as the newest.
            let fulls = known.iter().filter(|item| item.found.kind == Kind::Full && !item.is_lost());
            let mut newest: HashMap<String, (Option<&str>, i64)> = HashMap::new();
            for item in fulls {
                let age = (item.found.taken_at.as_deref(), item.id);
                let known = newest.entry(item.database(are_replicas)).or_insert(age);
                *known = age.max(*known);
            }
            let sets: HashMap<i64, &str> =
                known.iter().filter_map(|item| Some((item.id, item.found.set_guid.as_deref()?))).collect();
            // Copies of the newest backup are checked too, since each file gets its own verdict.
            let is_newest = |item: &Item| {
                let is_copy =
                    |id| item.found.set_guid.is_some() && item.found.set_guid.as_deref() == sets.get(&id).copied();
                newest
                    .get(&item.database(are_replicas))
                    .is_some_and(|(_, newest)| *newest == item.id || is_copy(*newest))
            };
            let reason = "not chosen: only the newest full backup of each database is checked".to_owned();
            ready().filter(|item| !is_newest(item)).map(|item| (item.id, reason.clone())).collect()
        }
        Policy::Sample(span) => {
            let is_running = |item: &&Item| item.state == "running";
            let running: BTreeSet<String> =
                queued.iter().filter(is_running).map(|item| item.database(are_replicas)).collect();
            let since = time::seconds(now).unwrap_or_default() - i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
            let is_due = |database: &str| {
                !running.contains(database)
                    && checked.get(database).and_then(|ended| time::seconds(ended)).is_none_or(|ended| ended <= since)
            };
            let mut candidates: HashMap<String, (Option<&str>, i64)> = HashMap::new();
            for item in ready().filter(|item| is_sample(item)) {
                let database = item.database(are_replicas);
                if is_due(&database) {
                    let age = (item.found.taken_at.as_deref(), item.id);
                    let known = candidates.entry(database).or_insert(age);
                    *known = age.max(*known);
                }
            }
            let is_chosen = |item: &Item| {
                // A backup with damaged labels is always checked.
                item.found.is_damaged
                    || item.tries > 0
                    || candidates.get(&item.database(are_replicas)).is_some_and(|(_, chosen)| *chosen == item.id)
            };
            let reason = "not chosen: its labels are sound, and another backup of this database is checked";
            ready().filter(|item| !is_chosen(item)).map(|item| (item.id, reason.to_owned())).collect()
        }
    }
}

/// Whether a check of this backup reads the whole database.
fn is_sample(item: &Item) -> bool {
    matches!(item.found.kind, Kind::Full | Kind::Differential)
}

/// The backups to check now, in order. First come the databases that were never checked, then the databases whose last
/// check is oldest. Larger backups of a database come before smaller backups. Backups whose checks were killed come
/// last of all.
pub(crate) fn order(queued: &[Item], are_replicas: bool, checked: &HashMap<String, String>, now: &str) -> Vec<i64> {
    let is_due = |item: &&Item| item.state == "ready" && item.not_before.as_deref().is_none_or(|moment| moment <= now);
    let mut due: Vec<&Item> = queued.iter().filter(is_due).collect();
    due.sort_by_cached_key(|item| {
        let last = checked.get(&item.database(are_replicas)).map_or("", String::as_str);
        (item.losses > 1, item.losses, last, Reverse(item.found.size), item.id)
    });
    due.into_iter().map(|item| item.id).collect()
}

#[cfg(test)]
mod tests {
    use history::queue::Found;

    use super::*;

    fn item(id: i64, family: &str, kind: Kind, taken_at: &str, size: u64) -> Item {
        Item {
            id,
            found: Found {
                identity: id.to_string(),
                family: family.to_owned(),
                server: String::new(),
                name: family.to_owned(),
                kind,
                taken_at: Some(taken_at.to_owned()),
                paths: Vec::new(),
                set_guid: None,
                position: 1,
                size,
                has_checksums: true,
                is_damaged: false,
                base: Vec::new(),
                waits_for: None,
                is_refused: false,
            },
            first_seen: String::new(),
            state: "ready".to_owned(),
            reason: String::new(),
            tries: 0,
            losses: 0,
            not_before: None,
            started: None,
            ended: None,
            verdict: None,
            findings: 0,
            not_verified: 0,
            run: None,
            reported_at: None,
            versions: String::new(),
        }
    }

    fn ids(left_out: Vec<(i64, String)>) -> Vec<i64> {
        left_out.into_iter().map(|(id, _)| id).collect()
    }

    const NOW: &str = "2026-11-21T12:00:00Z";

    #[test]
    fn families_never_checked_come_first_then_the_oldest_then_the_largest() {
        let checked = HashMap::from([
            ("old".to_owned(), "2026-11-01T00:00:00Z".to_owned()),
            ("new".to_owned(), "2026-11-20T00:00:00Z".to_owned()),
        ]);
        let of = |id, family, size| item(id, family, Kind::Full, NOW, size);
        let mut all = vec![of(1, "new", 900), of(2, "old", 10), of(3, "old", 20), of(4, "never", 1), of(5, "never", 2)];
        assert_eq!(order(&all, false, &checked, NOW), [5, 4, 3, 2, 1]);
        all[4].losses = 1;
        all[3].not_before = Some("2026-11-21T12:00:01Z".to_owned());
        all[0].state = "running".to_owned();
        assert_eq!(order(&all, false, &checked, NOW), [3, 2, 5], "not what runs or waits; what was killed comes last");
    }

    #[test]
    fn newest_is_the_newest_full_backup_of_each_family_even_if_it_is_not_whole() {
        let (full, differential) = (Kind::Full, Kind::Differential);
        let mut all = vec![
            item(1, "a", full, "2026-11-19T00:00:00Z", 1),
            item(2, "a", full, "2026-11-20T00:00:00Z", 1),
            item(3, "a", differential, "2026-11-21T00:00:00Z", 1),
            item(4, "b", full, "2026-11-01T00:00:00Z", 1),
        ];
        let none = HashMap::new();
        let chosen = |all: &[Item]| ids(left_out((Policy::Newest, false), all, all, &none, NOW));
        assert_eq!(chosen(&all), [1, 3]);
        all[1].found.server = "DEV".to_owned();
        assert_eq!(chosen(&all), [3], "a copy restored on another server is another database");
        assert_eq!(ids(left_out((Policy::Newest, true), &all, &all, &none, NOW)), [1, 3], "replicas are one");
        all[1].found.server = String::new();
        all[1].state = "waiting".to_owned();
        assert_eq!(chosen(&all), [1, 3]);
        all[1].state = "skipped".to_owned();
        all[1].reason = "gone".to_owned();
        assert_eq!(chosen(&all), [3], "the next one is the newest now");
        assert!(left_out((Policy::All, false), &all, &all, &none, NOW).is_empty());
    }

    #[test]
    fn a_sample_is_taken_once_in_its_time_for_each_database() {
        let week = Policy::Sample(Duration::from_secs(7 * 86_400));
        let of = |id, taken_at| item(id, "a", Kind::Full, taken_at, 1);
        let mut all = vec![of(1, "2026-11-19T00:00:00Z"), of(2, "2026-11-20T00:00:00Z")];
        let chosen = |all: &[Item], last: &str| {
            let checked = HashMap::from([("a".to_owned(), last.to_owned())]);
            ids(left_out((week, false), all, all, &checked, NOW))
        };
        assert_eq!(ids(left_out((week, false), &all, &all, &HashMap::new(), NOW)), [1]);
        assert_eq!(chosen(&all, "2026-11-14T12:00:00Z"), [1], "a week ago");
        assert_eq!(chosen(&all, "2026-11-14T12:00:01Z"), [1, 2], "a second less");
        all[0].found.server = "DEV".to_owned();
        let none = HashMap::new();
        assert!(left_out((week, false), &all, &all, &none, NOW).is_empty(), "restored on another server: another one");
        assert_eq!(ids(left_out((week, true), &all, &all, &none, NOW)), [1], "replicas are one");
        all[0].found.server = String::new();
        all[0].found.is_damaged = true;
        assert_eq!(chosen(&all, "2026-11-20T12:00:00Z"), [2], "damage is looked at");
        all[0].state = "running".to_owned();
        assert_eq!(chosen(&all, "2026-11-01T00:00:00Z"), [2], "one is being checked");
    }

    #[test]
    fn hours_may_cross_midnight() {
        let during = |text: &str| text.parse::<During>().unwrap();
        let night = during("22:00-05:30");
        let inside = |minute: u16| night.has(minute);
        assert!(inside(22 * 60) && inside(0) && inside(5 * 60 + 29));
        assert!(!inside(5 * 60 + 30) && !inside(21 * 60 + 59));
        let day = during("02:00-24:00");
        assert!(day.has(2 * 60) && day.has(23 * 60 + 59) && !day.has(0));
        for wrong in ["", "2-3", "25:00-26:00", "02:00-02:00", "02:60-03:00", "24:01-03:00", "+2:00-03:00"] {
            assert!(wrong.parse::<During>().is_err(), "{wrong}");
        }
        for wrong in ["", "sample", "sample:", "sample:7", "oldest"] {
            assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
        }
    }
}
