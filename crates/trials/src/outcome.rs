//! The outcome of a trial, and the totals of many trials.

use std::collections::BTreeMap;

/// The outcome of one trial.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The kind of damage or variation: the field, the fault, or the option.
    pub(crate) kind: String,
    /// The database, and the place and values of the damage, for human readers.
    pub(crate) what: String,
    /// The reason why the damage may go unnoticed; `None` if it must be noticed. If the verdict is `Kept`, this field
    /// has the excuse for a result that differs from the truth.
    pub(crate) harmless: Option<String>,
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// The time of the trial divided by the time for the sound database.
    pub(crate) time_ratio: Option<f64>,
    /// Peak memory divided by the grant.
    pub(crate) peak_ratio: Option<f64>,
    /// The number of variations that the trial tried, for example forms of input or executions of an entry point.
    pub(crate) executions: u64,
    /// What the trial has counted, by its name.
    pub(crate) figures: BTreeMap<String, u64>,
}

/// The result of a trial.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// The report has findings, and one of them names a damaged page or the damaged part of a backup.
    Right,
    /// The report has findings, but none of them names the damage.
    Elsewhere(String),
    /// The program refused before it read anything, or reported a read error. The message names the file.
    Refused,
    /// The report has no findings, but lists more as not verified than the report on the sound database.
    NotVerified,
    /// The report has no findings, and nothing in it concerns the damage: neither the places that are listed as not
    /// verified, nor the reason for refusing. Such a trial is counted as silent.
    Unrelated(String),
    /// The report has no findings, and lists nothing more as not verified than the report on the sound database.
    Silent,
    /// The report has a finding that the damage cannot explain.
    FalseAlarm(String),
    /// The check panicked.
    Panicked,
    /// The check took too long; the value is its time in seconds.
    Hung(f64),
    /// The check used more than its memory grant plus 5 %.
    Exceeded(String),
    /// The answers of two ways to run the check differ.
    Differs(String),
    /// The program broke a promise: it ended with a wrong exit status or by a signal, or it left a partial result.
    Broke(String),
    /// The program kept all promises.
    Kept,
}

impl Outcome {
    /// An outcome without further details.
    pub(crate) fn new(kind: impl Into<String>, what: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            kind: kind.into(),
            what: what.into(),
            harmless: None,
            verdict,
            time_ratio: None,
            peak_ratio: None,
            executions: 1,
            figures: BTreeMap::new(),
        }
    }

    /// The reason why the trial failed; `None` if it did not fail.
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

/// The totals of a campaign.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) tried: u64,
    pub(crate) executions: u64,
    /// The number of trials with damage that must be noticed. The next five fields divide these trials by their result;
    /// trials with another kind of failure are counted elsewhere.
    pub(crate) load_bearing: u64,
    pub(crate) right: u64,
    pub(crate) elsewhere: u64,
    pub(crate) refused: u64,
    pub(crate) not_verified: u64,
    /// The number of trials without any report of the damage. Reports unrelated to the damage do not count.
    pub(crate) silent: u64,
    /// The number of trials in which damage that may go unnoticed was noticed. The next field counts the trials in
    /// which such damage was not noticed.
    pub(crate) noticed_all_the_same: u64,
    pub(crate) harmless: u64,
    pub(crate) kept: u64,
    pub(crate) false_alarms: u64,
    pub(crate) panics: u64,
    pub(crate) hangs: u64,
    pub(crate) exceeded: u64,
    pub(crate) differences: u64,
    pub(crate) broken: u64,
    /// The number of trials with findings. The next field counts those of them in which no finding names the damage.
    /// Both fields include trials with damage that may go unnoticed.
    pub(crate) with_findings: u64,
    pub(crate) named_elsewhere: u64,
    pub(crate) worst_time: f64,
    pub(crate) worst_peak: f64,
    pub(crate) seconds: f64,
    /// How often each excuse was used in trials with the verdict `Kept`.
    pub(crate) excuses: BTreeMap<String, u64>,
    /// What the trials have counted, by its name.
    pub(crate) figures: BTreeMap<String, u64>,
    /// Two numbers for each kind of damage or variation: the number of trials, and the number of trials that failed or
    /// have no finding that names the damage.
    pub(crate) kinds: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.tried += 1;
        self.executions += outcome.executions;
        // Only trials with damage that must be noticed are counted. Trials with the verdict `Kept` are not judged by
        // their findings.
        let is_load_bearing = outcome.harmless.is_none() && outcome.verdict != Verdict::Kept;
        self.load_bearing += u64::from(is_load_bearing);
        let is_elsewhere = matches!(outcome.verdict, Verdict::Elsewhere(_));
        self.named_elsewhere += u64::from(is_elsewhere);
        self.with_findings += u64::from(is_elsewhere || outcome.verdict == Verdict::Right);
        if let (Verdict::Kept, Some(excuse)) = (&outcome.verdict, &outcome.harmless) {
            *self.excuses.entry(excuse.clone()).or_default() += 1;
        }
        for (name, count) in &outcome.figures {
            *self.figures.entry(name.clone()).or_default() += count;
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

    /// The number of trials that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.silent + self.false_alarms + self.panics + self.hangs + self.exceeded + self.differences + self.broken
    }

    /// The percentage of damage that was found or refused, out of the damage that must be noticed; `None` if no damage
    /// must be noticed.
    pub(crate) fn found(&self) -> Option<f64> {
        share(self.right + self.elsewhere + self.refused, self.load_bearing)
    }

    /// The percentage of damage that was found, refused or listed as not verified, out of the damage that must be
    /// noticed.
    pub(crate) fn noticed(&self) -> Option<f64> {
        share(self.right + self.elsewhere + self.refused + self.not_verified, self.load_bearing)
    }

    /// The percentage of trials in which a finding names the damage, out of the trials with findings.
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
