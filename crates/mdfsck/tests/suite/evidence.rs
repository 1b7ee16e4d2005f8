//! The pages that say why to trust mdfsck. Each bound of docs/trust.md follows from its counts, and each test that
//! docs/errata.md names exists.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The probability that a bound of docs/trust.md is wrong.
const DOUBT: f64 = 0.05;
/// A README for a first look has fewer words than this.
const README_WORDS: usize = 1000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The cells of the rows below the heading `head` of a table. A page without this table fails the test.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let of_table = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    let found: Vec<Vec<String>> = of_table.map(cells).collect();
    assert!(!found.is_empty(), "no table with the heading {head}");
    found
}

/// A number with commas between its thousands.
fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

/// The largest share at which `seen` cases or fewer among `tried` have a probability of 5 % (Clopper and Pearson).
fn bound(seen: u64, tried: u64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..100 {
        let share = f64::midpoint(low, high);
        if at_most(seen, tried, share) > DOUBT { low = share } else { high = share }
    }
    high
}

/// The probability of `seen` cases or fewer among `tried`, if each has the probability `share`.
fn at_most(seen: u64, tried: u64, share: f64) -> f64 {
    let (seen, tried) = (seen as f64, tried as f64);
    let mut term = tried * (-share).ln_1p();
    let (mut sum, mut case) = (term.exp(), 0.0);
    while case < seen {
        case += 1.0;
        term += ((tried - case + 1.0) / case).ln() + share.ln() - (-share).ln_1p();
        sum += term.exp();
    }
    sum
}

/// One case in how many, rounded down: the words of the bound.
fn one_in(seen: u64, tried: u64) -> u64 {
    (1.0 / bound(seen, tried)) as u64
}

/// The counts in words such as `0 of 4,714`, and the number in `1 in 1,574`.
fn counts(seen: &str, bound: &str) -> Option<(u64, u64, u64)> {
    let (seen, tried) = seen.split_once(" of ")?;
    Some((number(seen)?, number(tried)?, number(bound.strip_prefix("1 in ")?)?))
}

#[test]
fn a_bound_of_none_is_the_rule_of_three_and_of_some_that_of_clopper_and_pearson() {
    for (seen, tried, expected) in [(0, 83, 28), (0, 1000, 334), (0, 10, 3), (1, 100, 21), (3, 9300, 1199)] {
        assert_eq!(one_in(seen, tried), expected, "{seen} of {tried}");
    }
    // The rule of three: none among n says less than 3 in n.
    for tried in [100, 4714, 20_000, 1_430_000_000] {
        let exact = bound(0, tried);
        let three = 3.0 / tried as f64;
        assert!(exact < three && exact > 0.97 * three, "{tried}: {exact} {three}");
    }
    assert!((at_most(2, 5, 0.5) - 0.5).abs() < 1e-12);
}

#[test]
fn each_bound_of_the_trust_page_follows_from_its_counts() {
    let page = page("docs/trust.md");
    let bounds = rows(&page, "| what could be wrong |");
    assert!(bounds.len() > 20, "{}", bounds.len());
    for row in &bounds {
        let [what, seen, bound, command] = row.as_slice() else { panic!("four cells: {row:?}") };
        let (seen, tried, stated) = counts(seen, bound).unwrap_or_else(|| panic!("no counts: {row:?}"));
        assert_eq!(one_in(seen, tried), stated, "{what}");
        assert!(command.contains('`') || command.contains("]("), "{what}: no command");
    }
}

/// The campaigns of the long run: the results of a trial that would be wrong, and the column of their count.
const WRONG: [(&str, usize, usize); 3] =
    [("damage without a word", 7, 2), ("false alarms", 11, 1), ("panics, hangs", 12, 1)];

#[test]
fn each_campaign_of_the_trust_page_has_its_bounds() {
    let page = page("docs/trust.md");
    let bounds = rows(&page, "| what could be wrong |");
    for campaign in rows(&page, "| campaign | tried |") {
        for (what, seen, tried) in WRONG {
            let (name, seen, tried) = (&campaign[0], &campaign[seen], number(&campaign[tried]).unwrap());
            // No trial of some campaigns has damage that must be noticed.
            if tried < 10 || (what != "panics, hangs" && ["ways", "resources", "hostile"].contains(&name.as_str())) {
                continue;
            }
            let what = format!("`{name}`: {what}");
            let bound = bounds.iter().find(|row| row[0].starts_with(&what)).unwrap_or_else(|| panic!("no row: {what}"));
            let (stated, of, _) = counts(&bound[1], &bound[2]).unwrap();
            assert_eq!((stated, of), (number(seen).unwrap(), tried), "{what}");
        }
    }
}

#[test]
fn the_bound_of_the_real_files_has_the_number_of_their_sources() {
    let page = page("docs/trust.md");
    let bounds = rows(&page, "| what could be wrong |");
    let bound = bounds.iter().find(|row| row[0].contains("a public repository")).unwrap();
    let (seen, tried, _) = counts(&bound[1], &bound[2]).unwrap();
    let sources = page.split_once("Both together have ").and_then(|(_, rest)| number(rest.split(' ').next()?));
    assert_eq!(Some(tried), sources);
    let found = rows(&page, "|  | data files |").into_iter().find(|row| row[0] == "**findings**").unwrap();
    assert_eq!(seen, number(&found[1]).unwrap() + number(&found[2]).unwrap(), "{found:?}");
}

#[test]
fn no_count_of_none_stands_on_the_trust_page_without_its_bound() {
    let page = page("docs/trust.md");
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (at, _) in text.match_indices(" 0 of ") {
        let rest = text.get(at..).unwrap();
        let end = rest.find(". ").unwrap_or(rest.len());
        assert!(rest[..end].contains("1 in "), "{}", &rest[..end.min(200)]);
    }
}

#[test]
fn each_trial_that_the_table_of_faults_names_exists() {
    let (page, commands) = (page("docs/trust.md"), page("docs/commands.md"));
    let faults = rows(&page, "| fault | trials |");
    assert!(faults.len() >= 10, "{}", faults.len());
    for row in &faults {
        assert_eq!(row.len(), 6, "{row:?}");
        let trials: Vec<&str> = row[1].split('`').skip(1).step_by(2).collect();
        assert!(!trials.is_empty(), "no trial: {row:?}");
        for trial in trials {
            let exists = match trial.rsplit_once(' ') {
                None => root().join(format!("crates/trials/src/campaigns/{trial}.rs")).is_file(),
                Some((_, option)) => trial.starts_with("lab ") && commands.contains(option),
            };
            assert!(exists, "{trial}: {}", row[0]);
        }
    }
}

/// All code of the crates, as one text.
fn code() -> String {
    let (mut folders, mut text) = (vec![root().join("crates")], String::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("suite/evidence.rs") {
                text += &fs::read_to_string(path).unwrap();
            }
        }
    }
    text
}

/// What may be a test: the names of functions, and the texts that begin with a quotation mark, in order.
struct Names<'a>(BTreeSet<&'a str>, Vec<&'a str>);

impl<'a> Names<'a> {
    fn of(code: &'a str) -> Self {
        let functions = code.lines().filter_map(|line| line.split_once("fn ")?.1.split_once('(')).map(|(name, _)| name);
        // The shortest name of a trial has more letters than this.
        let is_long = |text: &&str| text.len() > 10 && text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let texts = code.lines().flat_map(|line| line.match_indices('"').map(|(at, _)| &line[at + 1..]));
        let mut texts: Vec<&str> = texts.filter(is_long).collect();
        texts.sort_unstable();
        Self(functions.collect(), texts)
    }

    /// Whether a test of this name exists: a function, a trial whose name begins like this, or a campaign of the trials.
    fn have(&self, test: &str) -> bool {
        if let Some(campaign) = test.strip_prefix("trials --campaign ") {
            let name = campaign.split(' ').next().unwrap_or_default();
            return root().join(format!("crates/trials/src/campaigns/{name}.rs")).is_file();
        }
        let first = self.1.partition_point(|text| *text < test);
        self.0.contains(test) || self.1.get(first).is_some_and(|text| text.starts_with(test))
    }
}

#[test]
fn each_test_that_the_errata_name_exists() {
    let (page, code) = (page("docs/errata.md"), code());
    let tests = Names::of(&code);
    let known: Vec<String> = rows(&page, "| word |").into_iter().map(|row| row[0].clone()).collect();
    let errata = rows(&page, "| corrected |");
    assert!(errata.len() >= 109, "{}", errata.len());
    let mut dates: Vec<&str> = Vec::new();
    for row in &errata {
        let [date, verdict, cause, found, held] = row.as_slice() else { panic!("five cells: {row:?}") };
        assert!(!verdict.is_empty() && !cause.is_empty(), "{row:?}");
        assert!(known.iter().any(|word| found.starts_with(word.as_str())), "found by {found}: {verdict}");
        dates.push(date);
        // A name of a crate is no test.
        let named = held.split('`').skip(1).step_by(2);
        let named: Vec<&str> = named.filter(|name| !root().join("crates").join(name).is_dir()).collect();
        assert!(!named.is_empty() || held.starts_with("none: "), "no test: {verdict}");
        for test in named {
            assert!(tests.have(test), "the test '{test}' is missing: {verdict}");
        }
    }
    assert!(dates.is_sorted() && dates.iter().all(|date| date.len() == 10), "{dates:?}");
}

/// Words in backticks that look like the ID of a limit: a subject, a full stop, and a name.
fn ids(text: &str) -> Vec<&str> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let spans = text.split('`').skip(1).step_by(2);
    let is_id = |span: &&str| span.split_once('.').is_some_and(|(subject, name)| is_word(subject) && is_word(name));
    spans.filter(is_id).collect()
}

#[test]
fn each_limit_that_the_assumptions_name_exists() {
    let (page, limits) = (page("docs/assumptions.md"), page("docs/limits.md"));
    let named = ids(&page);
    assert!(named.len() > 10, "{named:?}");
    for id in named {
        assert!(limits.contains(&format!("\n### {id}")), "docs/limits.md has no {id}");
    }
    // Each section says what is assumed, what a check does, and what confirmed it.
    for section in page.split("\n## ").skip(1).filter(|section| !section.starts_with("What the real files have")) {
        for part in ["- **Assumed**: ", "- **A check**: ", "- **Confirmed**: "] {
            assert!(section.contains(part), "{part} is missing in {}", section.lines().next().unwrap());
        }
    }
}

#[test]
fn a_test_that_is_gone_is_missed() {
    let tests = Names::of("fn it_holds() {}\n(\"a trial of two\", run),");
    assert!(tests.have("it_holds") && tests.have("a trial of two") && tests.have("trials --campaign stories"));
    assert!(!tests.have("it_hold") && !tests.have("trial of two") && !tests.have("trials --campaign tales"));
}

#[test]
fn readme_and_notice_say_whose_the_product_is_not_and_the_readme_is_a_first_look() {
    const WHOSE: &str = "mdfsck is not affiliated with Microsoft";
    let (readme, notice) = (page("README.md"), page("NOTICE"));
    assert!(readme.contains(WHOSE) && notice.contains(WHOSE));
    let words = readme.split_whitespace().count();
    assert!(words < README_WORDS, "{words} words");
    for page in ["CHALLENGE.md", "docs/trust.md", "docs/assumptions.md", "docs/errata.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let first = text.split("\n\n").nth(1).unwrap_or_default();
        assert!(first.starts_with("For "), "{page} begins without whom it is for: {first}");
    }
}
