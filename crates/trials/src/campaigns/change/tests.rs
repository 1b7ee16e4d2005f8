use std::path::{Path, PathBuf};

use super::*;
use night::Settings;

#[test]
fn a_proof_by_change_gives_the_report_of_a_whole_check() {
    let mut figures = Figures::new();
    for seed in [1, 2, 3] {
        let outcome = trial(seed);
        assert_eq!(outcome.failure(), None, "seed {seed}: {}", outcome.what);
        for (name, count) in outcome.figures {
            *figures.entry(name).or_default() += count;
        }
    }
    assert!(figures.get(PARTS_KEPT).is_some_and(|count| *count > 100), "{figures:?}");
}

#[test]
fn a_campaign_that_keeps_no_part_or_damages_nothing_has_a_shortfall() {
    let mut tally = Tally { tried: TRIALS, ..Tally::default() };
    tally.figures = MUST_COUNT.iter().map(|name| ((*name).to_owned(), 1)).collect();
    assert_eq!(shortfall(&tally), None);
    for name in [PARTS_KEPT, DAMAGE] {
        let mut without = tally.clone();
        without.figures.insert(name.to_owned(), 0);
        assert!(shortfall(&without).is_some_and(|text| text.contains(name)));
        without.tried -= 1;
        assert_eq!(shortfall(&without), None);
    }
}
