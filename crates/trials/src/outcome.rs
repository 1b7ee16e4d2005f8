//! What became of a trial, and what many of them add up to.

use std::collections::BTreeMap;

/// One trial.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// What was done: the field, the fault, the option.
    pub(crate) kind: String,
    /// Database, place and values, for people.
    pub(crate) what: String,
    /// Why nothing need be noticed; `None` of damage that must be. Of what was kept, the excuse that it took.
    pub(crate) harmless: Option<String>,
    /// What came out.
    pub(crate) verdict: Verdict,
    /// How many times the time of the sound database it took.
    pub(crate) time_ratio: Option<f64>,
    /// Peak of memory by grant.
    pub(crate) peak_ratio: Option<f64>,
    /// Things tried in this one trial: ways, executions.
    pub(crate) executions: u64,
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// Findings, one of which names a damaged page or the damaged part of a backup.
    Right,
    /// Findings, none of which does.
    Elsewhere(String),
    /// Refused before anything was read, or a read error, with a line that names the file.
    Refused,
    /// No finding; more is listed as not verified than of the sound database.
    NotVerified,
    /// No finding; what is not verified, or why it was refused, has nothing to do with the damage. Counts as silent.
    Unrelated(String),
    /// Nothing.
    Silent,
    /// A finding about something that the damage has nothing to do with.
    FalseAlarm(String),
    /// A panic.
    Panicked,
    /// Took too long: the seconds it took.
    Hung(f64),
    /// Took more memory than was granted and a twentieth on top.
    Exceeded(String),
    /// Another answer on another way.
    Differs(String),
    /// What was promised was not kept: a wrong exit status, half a result, a death by signal.
    Broke(String),
    /// What was promised was kept.
    Kept,
}

impl Outcome {
    /// An outcome of which no more is known.
    pub(crate) fn new(kind: impl Into<String>, what: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            kind: kind.into(),
            what: what.into(),
            harmless: None,
            verdict,
            time_ratio: None,
            peak_ratio: None,
            executions: 1,
        }
    }

    /// Why the trial failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Right | Verdict::Elsewhere(_) | Verdict::Refused | Verdict::NotVerified | Verdict::Kept => None,
            Verdict::Silent | Verdict::Unrelated(_) if self.harmless.is_some() => None,
            Verdict::Silent => Some("silent".to_owned()),
            Verdict::Unrelated(text) => Some(format!("silent, but for what has nothing to do with it: {text}")),
            Verdict::FalseAlarm(text) => Some(format!("false alarm: {text}")),
            Verdict::Panicked => Some("panic".to_owned()),
            Verdict::Hung(seconds) => Some(format!("hang: {seconds:.1} s")),
            Verdict::Exceeded(text) => Some(format!("over the grant: {text}")),
            Verdict::Differs(text) => Some(format!("difference: {text}")),
            Verdict::Broke(text) => Some(text.clone()),
        }
    }
}

/// What the trials of a campaign add up to.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) tried: u64,
    pub(crate) executions: u64,
    /// Damage that must be noticed: it is one of the next five, or failed in another way.
    pub(crate) load_bearing: u64,
    pub(crate) right: u64,
    pub(crate) elsewhere: u64,
    pub(crate) refused: u64,
    pub(crate) not_verified: u64,
    /// Nothing was said, or only what has nothing to do with the damage.
    pub(crate) silent: u64,
    /// Damage that need not be noticed: it was, or it was not.
    pub(crate) noticed_all_the_same: u64,
    pub(crate) harmless: u64,
    pub(crate) kept: u64,
    pub(crate) false_alarms: u64,
    pub(crate) panics: u64,
    pub(crate) hangs: u64,
    pub(crate) exceeded: u64,
    pub(crate) differences: u64,
    pub(crate) broken: u64,
    /// Trials with findings, and those in which none names the damage, whether it must be noticed or not.
    pub(crate) with_findings: u64,
    pub(crate) named_elsewhere: u64,
    pub(crate) worst_time: f64,
    pub(crate) worst_peak: f64,
    pub(crate) seconds: f64,
    /// Of what was kept, the excuses that it took, and how often.
    pub(crate) excuses: BTreeMap<String, u64>,
    /// By kind: tried, and how many failed or were found elsewhere.
    pub(crate) kinds: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.tried += 1;
        self.executions += outcome.executions;
        // The rest was neither damaged nor judged by what it names.
        let is_load_bearing = outcome.harmless.is_none() && outcome.verdict != Verdict::Kept;
        self.load_bearing += u64::from(is_load_bearing);
        let is_elsewhere = matches!(outcome.verdict, Verdict::Elsewhere(_));
        self.named_elsewhere += u64::from(is_elsewhere);
        self.with_findings += u64::from(is_elsewhere || outcome.verdict == Verdict::Right);
        if let (Verdict::Kept, Some(excuse)) = (&outcome.verdict, &outcome.harmless) {
            *self.excuses.entry(excuse.clone()).or_default() += 1;
        }
        let kind = self.kinds.entry(outcome.kind.clone()).or_default();
        kind.0 += 1;
        kind.1 += u64::from(outcome.failure().is_some() || is_elsewhere);
        *match &outcome.verdict {
            Verdict::FalseAlarm(_) => &mut self.false_alarms,
            Verdict::Panicked => &mut self.panics,
            Verdict::Hung(_) => &mut self.hangs,
            Verdict::Exceeded(_) => &mut self.exceeded,
            Verdict::Differs(_) => &mut self.differences,
            Verdict::Broke(_) => &mut self.broken,
            Verdict::Kept => &mut self.kept,
            Verdict::Silent | Verdict::Unrelated(_) if is_load_bearing => &mut self.silent,
            Verdict::Silent | Verdict::Unrelated(_) => &mut self.harmless,
            _ if !is_load_bearing => &mut self.noticed_all_the_same,
            Verdict::Right => &mut self.right,
            Verdict::Elsewhere(_) => &mut self.elsewhere,
            Verdict::Refused => &mut self.refused,
            Verdict::NotVerified => &mut self.not_verified,
        } += 1;
        self.worst_time = self.worst_time.max(outcome.time_ratio.unwrap_or_default());
        self.worst_peak = self.worst_peak.max(outcome.peak_ratio.unwrap_or_default());
    }

    /// Trials that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.silent + self.false_alarms + self.panics + self.hangs + self.exceeded + self.differences + self.broken
    }

    /// Share of what is load-bearing that was found or refused, in per cent; `None` where nothing was.
    pub(crate) fn found(&self) -> Option<f64> {
        share(self.right + self.elsewhere + self.refused, self.load_bearing)
    }

    /// Share of what is load-bearing that was found, refused or listed as not verified, in per cent.
    pub(crate) fn noticed(&self) -> Option<f64> {
        share(self.right + self.elsewhere + self.refused + self.not_verified, self.load_bearing)
    }

    /// Share of the trials with findings in which one names the damage, in per cent.
    pub(crate) fn right_page(&self) -> Option<f64> {
        share(self.with_findings - self.named_elsewhere, self.with_findings)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_failure_only_where_damage_must_be_noticed() {
        let mut outcome = Outcome::new("field", "here", Verdict::Silent);
        assert!(outcome.failure().is_some());
        let mut tally = Tally::default();
        tally.add(&outcome);
        outcome.harmless = Some("a reason".to_owned());
        assert_eq!(outcome.failure(), None);
        tally.add(&outcome);
        tally.add(&Outcome::new("field", "there", Verdict::Right));
        assert_eq!((tally.tried, tally.silent, tally.harmless, tally.failed()), (3, 1, 1, 1));
        assert_eq!((tally.noticed(), tally.right_page()), (Some(50.0), Some(100.0)));
    }

    #[test]
    fn a_doubt_is_noticed_but_not_found_and_what_has_nothing_to_do_with_the_damage_is_neither() {
        let mut tally = Tally::default();
        for verdict in [
            Verdict::Right,
            Verdict::NotVerified,
            Verdict::Unrelated("x".to_owned()),
            Verdict::FalseAlarm("y".to_owned()),
        ] {
            tally.add(&Outcome::new("field", "here", verdict));
        }
        assert_eq!((tally.load_bearing, tally.failed()), (4, 2));
        assert_eq!((tally.found(), tally.noticed()), (Some(25.0), Some(50.0)));
    }

    #[test]
    fn damage_that_need_not_be_noticed_counts_for_no_share_but_that_of_the_right_page() {
        let mut tally = Tally::default();
        let harmless = |verdict| Outcome { harmless: Some("why".to_owned()), ..Outcome::new("field", "here", verdict) };
        tally.add(&harmless(Verdict::Right));
        tally.add(&harmless(Verdict::Elsewhere("there".to_owned())));
        assert_eq!((tally.load_bearing, tally.noticed_all_the_same), (0, 2));
        assert_eq!((tally.noticed(), tally.right_page()), (None, Some(50.0)));
    }
}
