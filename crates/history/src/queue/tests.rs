use std::collections::{BTreeSet, HashMap};

use super::*;

fn history() -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open_or_create(&folder.path().join("h.db")).unwrap();
    (folder, history)
}

fn found(identity: &str, path: &str) -> Found {
    Found {
        identity: identity.to_owned(),
        family: "F".to_owned(),
        server: "S".to_owned(),
        name: "Sales".to_owned(),
        kind: Kind::Full,
        taken_at: Some("2026-11-21 22:00:00".to_owned()),
        paths: vec![path.to_owned()],
        set_guid: None,
        position: 1,
        size: 5,
        has_checksums: true,
        is_damaged: false,
        base: Vec::new(),
        waits_for: None,
        is_refused: false,
    }
}

fn put(history: &mut History, all: &[Found]) {
    put_as(history, all, "1");
}

/// Puts backups into the queue like `put`, but with files of the given version.
fn put_as(history: &mut History, all: &[Found], version: &str) {
    let file = |(found, path): (&Found, &String)| {
        let seen = Seen { path: path.clone(), size: found.size, version: version.to_owned() };
        (path.clone(), Looked { seen, is_known: true, fingerprint: None })
    };
    let files = all.iter().flat_map(|found| found.paths.iter().map(move |path| (found, path))).map(file).collect();
    history.enqueue(all, &files, &|_| true).unwrap();
}

fn file(path: &str, is_known: bool) -> (String, Looked) {
    let seen = Seen { path: path.to_owned(), size: 5, version: "1".to_owned() };
    (path.to_owned(), Looked { seen, is_known, fingerprint: None })
}

fn states(history: &History) -> Vec<(String, String)> {
    history.backups().unwrap().into_iter().map(|item| (item.state, item.reason)).collect()
}

fn seen(size: u64) -> Seen {
    Seen { path: "a".to_owned(), size, version: "1".to_owned() }
}

#[test]
fn a_file_is_as_it_is_since_its_size_or_version_changed_last() {
    let (_folder, mut history) = history();
    let since = |states: Vec<FileState>| (states[0].first_seen, states[0].since, states[0].labels.clone());
    assert_eq!(since(history.see(&[seen(1)], 100, &|_| true).unwrap()), (100, 100, None));
    assert_eq!(since(history.see(&[seen(1)], 200, &|_| true).unwrap()), (100, 100, None));
    history.keep_labels(&seen(1), "{}").unwrap();
    assert_eq!(since(history.see(&[seen(1)], 300, &|_| true).unwrap()), (100, 100, Some("{}".to_owned())));
    assert_eq!(since(history.see(&[seen(2)], 400, &|_| true).unwrap()), (100, 400, None), "labels are of one state");
    history.keep_labels(&seen(1), "late").unwrap();
    assert_eq!(since(history.see(&[seen(2)], 500, &|_| true).unwrap()), (100, 400, None));
    history.see(&[], 600, &|_| false).unwrap();
    assert_eq!(since(history.see(&[seen(2)], 700, &|_| true).unwrap()), (100, 400, None), "it was only not listed");
    history.see(&[], 800, &|_| true).unwrap();
    assert_eq!(since(history.see(&[seen(2)], 900, &|_| true).unwrap()), (900, 900, None));
}

#[test]
fn a_file_seen_by_a_clock_that_was_ahead_stands_still_from_now_on() {
    let (_folder, mut history) = history();
    history.see(&[seen(1)], 9_000, &|_| true).unwrap();
    history.keep_labels(&seen(1), "{}").unwrap();
    for now in [100, 200] {
        let states = history.see(&[seen(1)], now, &|_| true).unwrap();
        assert_eq!((states[0].since, states[0].labels.as_deref()), (100, Some("{}")));
    }
}

#[test]
fn a_file_of_the_same_size_and_times_that_holds_something_else_has_changed() {
    let (_folder, mut history) = history();
    let see = |history: &mut History, now| history.see(&[seen(1)], now, &|_| true).unwrap().remove(0);
    let mut state = see(&mut history, 100);
    history.keep_labels(&seen(1), "{}").unwrap();
    history.keep_fingerprint(&mut state, "one", 200).unwrap();
    assert_eq!(state.since, 100, "nothing was known before");
    let mut state = see(&mut history, 300);
    assert_eq!((state.labels.as_deref(), state.fingerprint.as_deref()), (Some("{}"), Some("one")));
    history.keep_fingerprint(&mut state, "one", 400).unwrap();
    assert_eq!((state.since, state.labels.as_deref()), (100, Some("{}")));
    history.keep_fingerprint(&mut state, "other", 500).unwrap();
    assert_eq!((state.since, &state.labels), (500, &None), "its labels are read again");
    assert_eq!(see(&mut history, 600), state);
}

#[test]
fn a_backup_is_checked_again_if_its_file_holds_something_else_and_not_if_that_is_unknown() {
    let (_folder, mut history) = history();
    let mut put = |fingerprint: Option<&str>| {
        let (path, mut file) = file("a.bak", true);
        file.fingerprint = fingerprint.map(str::to_owned);
        history.enqueue(&[found("A", "a.bak")], &HashMap::from([(path, file)]), &|_| true).unwrap();
        let is_ready = states(&history)[0].0 == "ready";
        if is_ready {
            let claim = history.claim(1, &Holder::new("H")).unwrap().unwrap();
            history.finish(&claim, Verdict::Sound, "", false).unwrap();
        }
        is_ready
    };
    assert!(put(None), "it is new");
    assert!(!put(Some("one")), "an earlier version knew none");
    assert!(!put(Some("one")) && put(Some("other")) && !put(Some("other")));
}

#[test]
fn a_backup_is_claimed_once_and_done_once() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    let (one, other) = (Holder::new("H1"), Holder::new("H2"));
    let claim = history.claim(1, &one).unwrap().unwrap();
    assert_eq!(history.claim(1, &other).unwrap(), None);
    history.finish(&claim, Verdict::Sound, "", false).unwrap();
    assert!(history.finish(&claim, Verdict::Corrupt, "again", false).is_err(), "it is done");
    put(&mut history, &[found("A", "a.bak"), found("A2", "b.bak")]);
    assert_eq!(states(&history).iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(), ["done", "ready"]);
    assert_eq!(history.claim(1, &one).unwrap(), None);
}

#[test]
fn what_a_killed_process_had_is_ready_again_and_what_a_living_one_has_is_not() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    let (one, other) = (Holder::new("H1"), Holder::new("H2"));
    let claim = history.claim(1, &one).unwrap().unwrap();
    let (none, working) = (BTreeSet::new(), BTreeSet::from([1]));
    assert_eq!((history.reclaim(&one, &working).unwrap(), history.reclaim(&other, &none).unwrap()), (0, 0));
    let old = crate::time::text_of_seconds(0);
    history.connection().execute("UPDATE backup SET heartbeat = ?1", [old]).unwrap();
    history.beat(&one, &working).unwrap();
    assert_eq!(history.reclaim(&other, &none).unwrap(), 0, "it said that it works");
    // The new holder has the process ID and the machine of the earlier holder. So the earlier process must have ended,
    // and its claim is released.
    assert_eq!(history.reclaim(&Holder::new("H1"), &none).unwrap(), 1);
    assert!(history.finish(&claim, Verdict::Sound, "", false).is_err(), "it is not its any more");
    let again = history.queued().unwrap();
    assert_eq!((again[0].state.as_str(), again[0].losses, again[0].tries), ("ready", 1, 0));
    history.claim(1, &one).unwrap().unwrap();
    assert_eq!(history.reclaim(&one, &none).unwrap(), 1, "its check has ended without a result");
    assert_eq!(history.queued().unwrap()[0].losses, 2);
    history.claim(1, &one).unwrap().unwrap();
    history.release_all(&one).unwrap();
    assert_eq!((states(&history)[0].0.as_str(), history.queued().unwrap()[0].losses), ("ready", 2));
}

#[test]
fn a_backup_waits_is_ready_is_gone_and_comes_back() {
    let (_folder, mut history) = history();
    let waiting = Found { waits_for: Some("1 of 2 stripes".to_owned()), ..found("A", "a.bak") };
    put(&mut history, &[waiting]);
    assert_eq!(states(&history), [("waiting".to_owned(), "1 of 2 stripes".to_owned())]);
    put(&mut history, &[found("A", "a.bak")]);
    assert_eq!(states(&history)[0].0, "ready");
    // A second backup set is being appended to the file, so the first one must wait.
    history.enqueue(&[], &HashMap::from([file("a.bak", false)]), &|_| true).unwrap();
    assert_eq!(states(&history)[0].0, "waiting");
    history.enqueue(&[], &HashMap::new(), &|_| false).unwrap();
    assert_eq!(states(&history)[0].0, "waiting", "not everything was listed");
    put(&mut history, &[]);
    assert_eq!(states(&history), [("skipped".to_owned(), "gone".to_owned())]);
    put(&mut history, &[found("A", "a.bak")]);
    assert_eq!(states(&history)[0].0, "ready");
}

#[test]
fn what_another_watcher_looks_for_is_neither_gone_nor_seen_anew() {
    let (_folder, mut history) = history();
    let (one, other) = (|path: &str| path.starts_with("one/"), |path: &str| path.starts_with("other/"));
    let seen = |path: &str| Seen { path: path.to_owned(), size: 1, version: "1".to_owned() };
    let files = |path: &str| HashMap::from([file(path, true)]);
    for now in [100, 200] {
        let first = history.see(&[seen("one/a.bak")], now, &one).unwrap();
        let second = history.see(&[seen("other/b.bak")], now, &other).unwrap();
        assert_eq!((first[0].since, second[0].since), (100, 100));
        history.enqueue(&[found("A", "one/a.bak")], &files("one/a.bak"), &one).unwrap();
        history.enqueue(&[found("B", "other/b.bak")], &files("other/b.bak"), &other).unwrap();
    }
    assert!(states(&history).iter().all(|(state, _)| state == "ready"));
    history.enqueue(&[], &HashMap::new(), &one).unwrap();
    assert_eq!(states(&history).iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(), ["skipped", "ready"]);
}

#[test]
fn a_backup_that_was_overwritten_is_left_out_until_it_is_there_again() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    put(&mut history, &[found("B", "a.bak")]);
    let overwritten = ("skipped".to_owned(), "overwritten".to_owned());
    assert_eq!(states(&history), [overwritten, ("ready".to_owned(), String::new())]);
    put(&mut history, &[found("A", "old.bak"), found("B", "a.bak")]);
    assert!(states(&history).iter().all(|(state, _)| state == "ready"));
    // The scan knows the contents of `old.bak`, and the backup is no longer among them.
    let files = HashMap::from([file("old.bak", true), file("a.bak", false)]);
    history.enqueue(&[], &files, &|_| true).unwrap();
    let reasons: Vec<String> = states(&history).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, ["overwritten", "its files are being written"]);
}

#[test]
fn a_backup_that_was_checked_is_checked_again_if_its_file_has_changed_in_any_way() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    let holder = Holder::new("H1");
    let mut state_after = |found: Found, version: &str| {
        if let Some(claim) = history.claim(1, &holder).unwrap() {
            history.finish(&claim, Verdict::Corrupt, "", false).unwrap();
        }
        put_as(&mut history, &[found], version);
        states(&history)[0].0.clone()
    };
    assert_eq!(state_after(found("A", "a.bak"), "1"), "done");
    assert_eq!(state_after(found("A", "b.bak"), "2"), "ready", "another file: its bytes were not read");
    assert_eq!(state_after(found("A", "b.bak"), "3"), "ready", "a good one in the place of a bad one");
    assert_eq!(state_after(found("A", "b.bak"), "3"), "done");
    assert_eq!(
        state_after(Found { size: 9, ..found("A", "b.bak") }, "4"),
        "ready",
        "it may have rotted while a set was appended"
    );
    assert_eq!(state_after(Found { size: 8, ..found("A", "c.bak") }, "4"), "ready", "another file");
}

#[test]
fn only_a_backup_that_is_there_and_whole_and_not_corrupt_is_new_enough() {
    let (_folder, mut history) = history();
    let now = crate::time::now();
    let of = |identity: &str, kind: Kind| Found { kind, ..found(identity, &format!("{identity}.bak")) };
    let all = [of("A", Kind::Full), of("B", Kind::Differential), of("C", Kind::Files)];
    put(&mut history, &all);
    let set = |id: i64, what: &str| {
        history.connection().execute(&format!("UPDATE backup SET {what} WHERE id = {id}"), []).unwrap();
        history.families_without_backup(Duration::from_secs(3600), false).unwrap().len()
    };
    let old = "taken_at = '2020-01-01T00:00:00Z'";
    set(1, old);
    assert_eq!(set(2, old), 1, "both are old");
    assert_eq!(set(3, &format!("taken_at = '{now}'")), 1, "only some of the files");
    assert_eq!(set(2, &format!("taken_at = '{now}'")), 0);
    for lost in ["gone_at = '2026-01-01'", "verdict = 'corrupt'", "state = 'waiting'", "state = 'skipped'"] {
        assert_eq!(set(2, lost), 1, "{lost}");
        assert_eq!(set(2, "gone_at = NULL, verdict = NULL, state = 'ready'"), 0);
    }
    assert_eq!(set(2, "state = 'skipped', reason = 'not chosen: another is'"), 0, "it is whole all the same");
}

#[test]
fn a_database_of_which_only_the_queue_knows_can_be_forgotten() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    assert_eq!(history.forget_database("sales").unwrap().databases, 1);
    assert!(history.backups().unwrap().is_empty());
    assert!(history.forget_database("sales").is_err(), "there is none any more");
}

#[test]
fn a_file_that_is_known_at_last_is_no_longer_unknown() {
    let (_folder, mut history) = history();
    let growing = Found {
        kind: Kind::Unknown,
        waits_for: Some("is being written".to_owned()),
        ..found(&of_file("a.bak"), "a.bak")
    };
    put(&mut history, &[growing]);
    put(&mut history, &[found("A", "a.bak")]);
    let all = history.backups().unwrap();
    assert_eq!((all.len(), all[0].found.identity.as_str()), (1, "A"));
}

#[test]
fn a_backup_that_cannot_be_checked_is_tried_again_as_long_as_it_is_there() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("A", "a.bak")]);
    let holder = Holder::new("H1");
    for tries in 1..=5 {
        history.connection().execute("UPDATE backup SET not_before = NULL", []).unwrap();
        let claim = history.claim(1, &holder).unwrap().unwrap();
        let failed = history.transaction(|transaction| fail(transaction, &claim, None, "cannot read")).unwrap();
        assert_eq!(failed, Some(tries));
        assert_eq!(history.claim(1, &holder).unwrap(), None, "not at once");
        let due = history.unreported("", "").unwrap();
        assert_eq!(due.len(), 1, "each is reported");
        history.reported(&due, true).unwrap();
        assert!(history.unreported("", "").unwrap().is_empty());
    }
    assert_eq!(states(&history), [("ready".to_owned(), "tried 5 times: cannot read".to_owned())]);
    assert_eq!(history.unreported("", "9999-01-01T00:00:00Z").unwrap().len(), 1, "the next run says so too");
    put(&mut history, &[]);
    assert_eq!(states(&history), [("skipped".to_owned(), "gone".to_owned())]);
}

#[test]
fn what_waits_for_long_is_reported_now_and_then() {
    let (_folder, mut history) = history();
    put(&mut history, &[Found { waits_for: Some("is being written".to_owned()), ..found("A", "a.bak") }]);
    assert!(history.unreported("2020-01-01T00:00:00Z", "").unwrap().is_empty());
    let due = history.unreported("9999-01-01T00:00:00Z", "2020-01-01T00:00:00Z").unwrap();
    history.reported(&due, true).unwrap();
    assert!(history.unreported("9999-01-01T00:00:00Z", "2020-01-01T00:00:00Z").unwrap().is_empty());
    let again = history.unreported("9999-01-01T00:00:00Z", "9999-01-01T00:00:00Z").unwrap();
    assert_eq!(again.len(), 1);
    history.reported(&again, true).unwrap();
    let holder = Holder::new("H1");
    let told = history.take_event(&holder).unwrap();
    assert_eq!(told.map(|message| message.event).as_deref(), Some("failed"));
    assert!(!history.has_event().unwrap(), "once");
}

#[test]
fn an_alarm_is_raised_once_and_passed_on_until_that_has_worked() {
    use crate::outbox::{Event, Judge, Promise, Raised};
    let (_folder, mut history) = history();
    let promise = Promise { broken: Event::PromiseBroken, judge: Judge::Watch, span: Duration::from_secs(60) };
    let raised =
        [Raised { family: "F".to_owned(), server: String::new(), name: "a\"\n".to_owned(), text: "broken".to_owned() }];
    for _ in 0..3 {
        history.raise(&promise, &raised, None, true).unwrap();
    }
    let holder = Holder::new("H1");
    let taken = history.take_event(&holder).unwrap().unwrap();
    assert_eq!((taken.event.as_str(), taken.count), ("promise-broken", 1));
    assert_eq!(taken.lines.lines().count(), 1, "a name is no line break");
    assert_eq!(history.take_event(&Holder::new("H2")).unwrap(), None, "another passes it on");
    history.passed_on(&taken, Some("status 1")).unwrap();
    assert_eq!(history.take_event(&holder).unwrap(), None, "not at once");
    history.retry_events(&holder).unwrap();
    assert_eq!(history.take_event(&holder).unwrap().as_ref(), Some(&taken));
    history.passed_on(&taken, None).unwrap();
    history.raise(&promise, &[], None, true).unwrap();
    history.retry_events(&holder).unwrap();
    let kept = history.take_event(&holder).unwrap();
    assert_eq!(kept.as_ref().map(|message| message.event.as_str()), Some("promise-kept-again"));
    // The new holder has the process ID and the machine of the earlier holder. So the earlier process must have ended,
    // and its event can be taken.
    history.retry_events(&Holder::new("H1")).unwrap();
    assert_eq!(history.take_event(&holder).unwrap(), kept);
}

#[test]
fn an_event_that_always_fails_holds_up_no_other() {
    use crate::outbox::{Event, Judge, Promise, Raised};
    let (_folder, mut history) = history();
    let promise = Promise { broken: Event::PromiseBroken, judge: Judge::Watch, span: Duration::from_secs(60) };
    let of = |family: &str| Raised {
        family: family.to_owned(),
        server: String::new(),
        name: family.to_owned(),
        text: String::new(),
    };
    let mut raised = vec![of("A"), of("B")];
    history.raise(&promise, &raised, None, true).unwrap();
    let holder = Holder::new("H1");
    for _ in 0..10 {
        history.retry_events(&holder).unwrap();
        for family in ["A", "B"] {
            let taken = history.take_event(&holder).unwrap().unwrap();
            assert_eq!(taken.database, family, "in their order");
            history.passed_on(&taken, Some("status 1")).unwrap();
        }
    }
    raised.push(of("C"));
    history.raise(&promise, &raised, None, true).unwrap();
    history.retry_events(&holder).unwrap();
    assert_eq!(history.take_event(&holder).unwrap().map(|taken| taken.database).as_deref(), Some("C"));
}

#[test]
fn a_process_answers_only_for_events_that_it_could_not_pass_on_itself() {
    use crate::outbox::{Event, Judge, Promise, Raised};
    let (_folder, mut history) = history();
    let promise = Promise { broken: Event::PromiseBroken, judge: Judge::Watch, span: Duration::from_secs(60) };
    let raised = ["A", "B", "C"].map(|family| Raised {
        family: family.to_owned(),
        server: String::new(),
        name: family.to_owned(),
        text: String::new(),
    });
    history.raise(&promise, &raised, None, true).unwrap();
    let (here, there) = (Holder::new("H1"), Holder::new("H2"));
    let mut failed = BTreeSet::new();
    for (holder, family) in [(&here, "A"), (&there, "B")] {
        let taken = history.take_event(holder).unwrap().unwrap();
        assert_eq!(taken.database, family);
        history.passed_on(&taken, Some("status 1")).unwrap();
        if family == "A" {
            failed.insert(taken.id);
        }
    }
    let left = |history: &History, gave_up| history.events_left(&here, (&failed, gave_up)).unwrap();
    assert_eq!(left(&history, false), 1, "A");
    assert_eq!(left(&history, true), 2, "A, and C, which was not tried");
    let taken = history.take_event(&there).unwrap().unwrap();
    assert_eq!((taken.database.as_str(), left(&history, true)), ("C", 1));
    history.retry_events(&there).unwrap();
    let taken = history.take_event(&there).unwrap().unwrap();
    assert_eq!((taken.database.as_str(), left(&history, false)), ("A", 0), "another process has it now");
    history.passed_on(&taken, None).unwrap();
    assert_eq!(left(&history, false), 0);
}

#[test]
fn a_promise_that_is_kept_says_nothing_of_a_shorter_one_or_of_other_databases() {
    use crate::outbox::{Event, Judge, Promise, Raised};
    let (_folder, mut history) = history();
    let of = |judge: Judge, seconds: u64| Promise {
        broken: Event::PromiseBroken,
        judge,
        span: Duration::from_secs(seconds),
    };
    let (short, long) = (of(Judge::Watch, 60), of(Judge::Watch, 600));
    let raised = ["F", "G"].map(|family| Raised {
        family: family.to_owned(),
        server: String::new(),
        name: family.to_owned(),
        text: "old".to_owned(),
    });
    let new = |history: &mut History, promise: &Promise, raised: &[Raised], judged: Option<&str>| {
        history.raise(promise, raised, judged, true).unwrap().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(new(&mut history, &short, &raised, None), ["F", "G"]);
    assert!(new(&mut history, &long, &[], None).is_empty());
    assert_eq!(new(&mut history, &of(Judge::Check, 60), &raised[..1], Some("F")), ["F"], "it looks ahead");
    // Only family F was judged. The promise for family G is still recorded as broken, so it is not reported as newly
    // broken afterwards.
    assert!(new(&mut history, &short, &[], Some("F")).is_empty());
    assert_eq!(new(&mut history, &short, &raised, None), ["F"]);
    let holder = Holder::new("H1");
    let mut events = Vec::new();
    while let Some(taken) = history.take_event(&holder).unwrap() {
        events.push(format!("{} {}", taken.event, taken.database));
        history.passed_on(&taken, None).unwrap();
    }
    let expected =
        ["promise-broken F", "promise-broken G", "promise-broken F", "promise-kept-again ", "promise-broken F"];
    assert_eq!(events, expected);
    assert!(!history.has_event().unwrap());
}

#[test]
fn an_alarm_that_was_not_judged_for_more_than_a_year_is_forgotten() {
    use crate::outbox::{Event, Judge, Promise, Raised};
    let (_folder, mut history) = history();
    let promise = Promise { broken: Event::BackupMissing, judge: Judge::Watch, span: Duration::from_secs(60) };
    let raised = [Raised { family: "F".to_owned(), server: String::new(), name: String::new(), text: String::new() }];
    let mut raise = |ago: u64| {
        let then = time::text(SystemTime::now() - Duration::from_secs(ago * 86_400));
        history.connection().execute("UPDATE alarm SET judged = ?1", [then]).unwrap();
        history.raise(&promise, &raised, None, true).unwrap().len()
    };
    assert_eq!([raise(0), raise(31), raise(399), raise(401)], [1, 0, 0, 1]);
}

#[test]
fn a_result_of_an_earlier_version_is_that_of_the_file_that_was_read() {
    let (_folder, mut history) = history();
    put(&mut history, &[found("set A 1 5", "a.bak")]);
    let claim = history.claim(1, &Holder::new("H1")).unwrap().unwrap();
    history.finish(&claim, Verdict::Sound, "", false).unwrap();
    let both = ["a.bak", "b.bak"].map(|path| found(&of_set_in("set A 1 5", path), path));
    put(&mut history, &both);
    let state = |history: &History| states(history).into_iter().map(|(state, _)| state).collect::<Vec<_>>();
    assert_eq!(state(&history), ["done", "ready"], "the copy was never read");
    put(&mut history, &both);
    assert_eq!(state(&history), ["done", "ready"]);
}

#[test]
fn what_an_earlier_version_knew_of_a_file_is_not_checked_again() {
    use super::finding::is_version;
    assert!(is_version("123", "123", 1) && is_version("123", "123 9.000000001", 1));
    assert!(!is_version("123 8.1", "123 9.1", 1), "its times were put back");
    assert!(!is_version("123 9.0", "123 9.000", 1) && !is_version("12", "123 9.0", 1));
    assert!(is_version("4096 123", "4096 123 9.0", 2) && !is_version("4096 123 8.0", "4096 123 8.0 9", 2));
}

#[test]
fn a_database_that_was_restored_on_another_server_keeps_no_promise_of_the_first() {
    let (_folder, mut history) = history();
    let prod = found("A", "a.bak");
    let dev = Found { server: "DEV".to_owned(), ..found("B", "b.bak") };
    put(&mut history, &[prod, dev]);
    let now = crate::time::now();
    history.connection().execute("UPDATE backup SET taken_at = '2020-01-01' WHERE id = 1", []).unwrap();
    history.connection().execute("UPDATE backup SET taken_at = ?1 WHERE id = 2", [now]).unwrap();
    let hour = Duration::from_secs(3600);
    let late = history.families_without_backup(hour, false).unwrap();
    assert_eq!(
        late.iter().map(|one| (one.server.as_str(), one.key())).collect::<Vec<_>>(),
        [("S", "F on s as Sales".to_owned())]
    );
    assert!(history.families_without_backup(hour, true).unwrap().is_empty(), "replicas are one database");
}
