//! What messages mean together: cases in which one message changes the meaning of another, and what to do next.

use super::cause::Layer;
use super::{Event, Explained, Group, Pasted};
use crate::dbcc_run::{ENDED, SNAPSHOT_FAILED};

/// Numbers that show that recovery of a database itself failed.
const NOT_RECOVERED: [u16; 10] = [945, 3414, 5171, 5172, 5173, 9001, 9003, 9004, 17204, 17207];
/// Numbers that only say that a backup does not fit the others.
const ORDER_OF_BACKUPS: [u16; 5] = [3136, 3159, 4305, 4312, 4326];
/// Numbers that show a lost write, or a page of another point in time.
const LOST_WRITE: [u16; 4] = [605, 3448, 3456, 5278];

/// Messages that continue a finding, and that no total counts.
pub(super) const DETAILS: [u16; 3] = [8955, 8956, 8988];

/// The totals of a run, by the message that has them. Each way to count gives all errors of a run that reached its end.
const TOTALS: [&[u16]; 3] = [&[8989], &[8957], &[8954, 8990]];

/// What to do next: a sentence, and the command to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NextStep {
    pub(super) what: &'static str,
    pub(super) command: Option<&'static str>,
}

/// The events of a group, together with those that name no database.
struct View<'a> {
    own: &'a Group,
    unnamed: Option<&'a Group>,
    /// Whether all messages of the text were kept.
    is_whole: bool,
}

impl<'a> View<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Event> {
        let unnamed = self.unnamed.map(|group| group.events.as_slice()).unwrap_or_default();
        self.own.events.iter().chain(unnamed)
    }

    fn has(&self, numbers: &[u16]) -> bool {
        self.all().any(|event| numbers.contains(&event.number))
    }

    fn is_snapshot_lost(&self) -> bool {
        self.has(&SNAPSHOT_FAILED) || self.all().any(|event| event.seen.is_of_snapshot)
    }

    /// Whether 926 is about the hidden snapshot of DBCC: a snapshot failed, and no message says that recovery of the
    /// database itself failed.
    fn is_suspect_snapshot(&self) -> bool {
        self.is_snapshot_lost() && !self.has(&NOT_RECOVERED)
    }

    /// Whether a check reached its end, all of its findings are here, all of them are about nonclustered indexes, and no
    /// other message is about damage. If the text has several checks, it has the findings of all of them.
    fn loses_no_row(&self) -> bool {
        let is_finding = |event: &&Event| matches!(event.explained, Explained::Check(_));
        let is_counted = |event: &&Event| is_finding(event) && !DETAILS.contains(&event.number);
        let found: u64 = self.own.events.iter().filter(is_counted).map(|event| event.seen.count).sum();
        let total = |numbers: &&[u16]| -> u64 {
            let counted = self.all().filter(|event| numbers.contains(&event.number));
            counted.fold(0, |sum, event| sum.saturating_add(event.seen.errors))
        };
        let total = TOTALS.iter().map(total).max().unwrap_or_default();
        let is_of_rows = |event: &Event| {
            let is_below =
                matches!(event.rank.layer, Layer::Files | Layer::Log | Layer::Pages | Layer::Recovery | Layer::State);
            // A row that only an index has (8952) may be a row that the table has lost.
            is_below || event.seen.is_of_rows || matches!(event.number, 823 | 8952 | 8986)
        };
        let has_end = self.all().any(|event| event.seen.is_end);
        let has_all = self.is_whole && has_end && (1..=found).contains(&total);
        has_all && !self.is_cut_off() && !self.all().any(is_of_rows)
    }

    fn is_cut_off(&self) -> bool {
        self.has(&ENDED) || self.is_snapshot_lost()
    }
}

impl Pasted {
    fn views(&self) -> impl Iterator<Item = View<'_>> {
        let unnamed = self.groups.iter().find(|group| group.database.is_none());
        let is_whole = !self.is_cut && self.dropped == 0;
        self.groups.iter().map(move |own| View { own, unnamed: unnamed.filter(|_| own.database.is_some()), is_whole })
    }

    /// The cases in which one message changes the meaning of another, one sentence or two for each.
    pub(super) fn cases(&self) -> Vec<String> {
        self.views().flat_map(|view| cases(&view)).collect()
    }

    /// What to do next, in order. There is always a step.
    pub(super) fn next_steps(&self) -> Vec<NextStep> {
        let needs = self.needs();
        let all = [
            (needs.storage, STORAGE),
            (needs.rescue, RESCUE),
            (needs.rescue || needs.log, LOG),
            (needs.damage || needs.files, EXTENT),
            (needs.lost_writes, AUDIT),
            (needs.damage, ADVISE),
            (needs.media, MEDIA),
            (needs.order, ORDER),
            (needs.repetition, REPEAT),
        ];
        let mut steps: Vec<NextStep> =
            all.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, step)| step).collect();
        if steps.iter().all(|step| step.command.is_none()) {
            steps.push(NO_DAMAGE);
        }
        steps
    }

    fn needs(&self) -> Needs {
        let has = |layer: Layer| self.events().any(|event| event.rank.layer == layer);
        let any = |numbers: &[u16]| self.events().any(|event| numbers.contains(&event.number));
        let is_of_machine = |event: &Event| {
            let is_low = matches!(event.rank.layer, Layer::Machine | Layer::Storage);
            let is_of_shortage = is_shortage(event.number.into()) || event.seen.os_error.is_some_and(is_shortage);
            is_low && !event.seen.is_of_snapshot && !is_of_shortage
        };
        let rescue = self.views().any(|view| {
            let events = || view.own.events.iter();
            let is_down = events().any(|event| matches!(event.number, 926 | 3313 | 3448));
            is_down && !view.is_suspect_snapshot() || events().any(|event| NOT_RECOVERED.contains(&event.number))
        });
        let backups = || self.events().filter(|event| event.rank.layer == Layer::Backup && event.number != 3013);
        Needs {
            storage: self.events().any(is_of_machine),
            rescue,
            log: has(Layer::Log),
            files: has(Layer::Files),
            damage: has(Layer::Pages) || has(Layer::Findings) || any(&[823]) || rescue,
            lost_writes: any(&LOST_WRITE),
            media: backups().any(|event| !ORDER_OF_BACKUPS.contains(&event.number)),
            order: backups().any(|event| ORDER_OF_BACKUPS.contains(&event.number)),
            repetition: self.views().any(|view| view.is_cut_off()),
        }
    }
}

/// What the messages make necessary.
struct Needs {
    storage: bool,
    rescue: bool,
    log: bool,
    files: bool,
    damage: bool,
    lost_writes: bool,
    media: bool,
    order: bool,
    repetition: bool,
}

/// Numbers of the machine and its storage that show only a lack of memory or space, and 854, which is no error. 112, 665,
/// 1130 and 1450 are errors of the operating system.
const SHORTAGES: [u16; 10] = [112, 665, 701, 802, 854, 1105, 1130, 1450, 8645, 9002];

/// Whether the error shows only a lack of memory or space.
pub(super) fn is_shortage(number: u32) -> bool {
    u16::try_from(number).is_ok_and(|number| SHORTAGES.contains(&number))
}

const STORAGE: NextStep = NextStep {
    what: "Have the machine and its storage examined, or move the files to other storage, before anything is restored or repaired there.",
    command: None,
};
const RESCUE: NextStep = NextStep {
    what: "Copy the data and log files first, and do not detach the database. See what the files are, and which are missing.",
    command: Some("mdfsck info FILES"),
};
const LOG: NextStep =
    NextStep { what: "See whether the log can be read, and where it ends.", command: Some("mdfsck log FILES") };
const EXTENT: NextStep = NextStep {
    what: "Check the files, or a copy of them, to see the whole extent of the damage.",
    command: Some("mdfsck check FILES"),
};
const AUDIT: NextStep = NextStep {
    what: "Compare the pages with the log: this proves lost writes, and names their pages.",
    command: Some("mdfsck audit FILES"),
};
const ADVISE: NextStep = NextStep {
    what: "Get the steps to recover, in order, with the lost rows and the backups that have sound copies of the damaged pages.",
    command: Some("mdfsck advise FILES --backups BACKUPS"),
};
const MEDIA: NextStep = NextStep {
    what: "Find the backups from which a restore succeeds: this reads all of their pages.",
    command: Some("mdfsck chain --verify BACKUPS"),
};
const ORDER: NextStep = NextStep {
    what: "See which backups follow one another, and which are missing.",
    command: Some("mdfsck chain BACKUPS"),
};
const REPEAT: NextStep = NextStep {
    what: "Repeat the check that was cut off. A check of a backup needs no snapshot, no tempdb and no server.",
    command: Some("mdfsck check BACKUPS"),
};
const NO_DAMAGE: NextStep = NextStep {
    what: "These messages name no damage. Check the files or the newest backup to see whether the database is sound.",
    command: Some("mdfsck check FILES"),
};

fn cases(view: &View<'_>) -> Vec<String> {
    let name = view.own.database.as_deref();
    let of = name.map(|name| format!(" of {name}")).unwrap_or_default();
    let own = |number: u16| view.own.events.iter().any(|event| event.number == number);
    let mut cases = Vec::new();
    if own(926) && view.is_suspect_snapshot() {
        cases.push(format!(
            "926 is about the hidden snapshot of DBCC, which has the name of the database, and not about the database{of} \
             itself: the snapshot failed. If sys.databases shows the database as ONLINE, nothing else is wrong."
        ));
    }
    if own(8921) && view.is_snapshot_lost() {
        cases.push(format!(
            "8921 came because the hidden snapshot of DBCC failed. It does not show damage of the database{of}."
        ));
    } else if own(8921) && view.has(&[1105]) {
        cases.push(
            "8921 came because a filegroup was full (1105), usually that of tempdb. It does not show damage."
                .to_owned(),
        );
    }
    let totals = || view.own.events.iter().filter(|event| matches!(event.number, 8957 | 8989));
    let finds_nothing = totals().any(|event| event.seen.least_errors == Some(0));
    if finds_nothing && view.is_cut_off() {
        cases.push(format!(
            "A check{of} was cut off. That it found 0 errors proves nothing: the line is also written by a check that did not reach its end."
        ));
    }
    if view.loses_no_row() {
        cases.push(format!(
            "All findings{of} have index ID 2 or higher: only nonclustered indexes are damaged, and no row of a table is lost. \
             The indexes can be disabled and rebuilt."
        ));
    }
    cases
}
