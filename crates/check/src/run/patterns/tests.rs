use super::place::period;
use super::*;

const FILE: u16 = 1;

fn fact(page: u32, content: Content) -> Fact {
    Fact { page: PageId::new(FILE, page), is_doubtful: false, content }
}

/// The patterns of facts. All pages are in use, except for those in `unused`.
fn patterns_with(facts: &[Fact], unused: &[u32]) -> Vec<Pattern> {
    let mut facts = facts.to_vec();
    facts.sort();
    evaluate(&Runs::of(facts.into_iter(), |page| !unused.contains(&page.page)), &[FILE])
}

fn patterns(content: Content, pages: impl IntoIterator<Item = u32>) -> Vec<Pattern> {
    patterns_with(&pages.into_iter().map(|page| fact(page, content)).collect::<Vec<_>>(), &[])
}

fn pattern(kind: PatternKind, (first, last): (u32, u32), pages: u64) -> Pattern {
    Pattern { file_id: FILE, first, last, pages, runs: 1, every: None, kind }
}

fn far(distance: i64) -> Content {
    Content::OtherPlace { file: FILE, distance, is_known: true }
}

fn far_kind(distance: impl Into<Option<i64>>) -> PatternKind {
    PatternKind::OtherPlace { file: FILE, distance: distance.into(), has_file: true, is_unknown: false }
}

#[test]
fn consecutive_pages_are_one_pattern_and_exact_contents_need_one_page_only() {
    let zeros = PatternKind::Same(0);
    assert_eq!(patterns(Content::Same(0), 64..72), [pattern(zeros, (64, 71), 8)]);
    assert_eq!(patterns(Content::Same(0), [9]), [pattern(zeros, (9, 9), 1)]);
    assert_eq!(patterns(Content::Text, [9]), [pattern(PatternKind::Text, (9, 9), 1)]);
    assert_eq!(patterns(far(-5), [9]), [pattern(far_kind(-5), (9, 9), 1)]);
    for content in [Content::Noise, Content::Shifted(3), Content::Foreign, Content::Changed, Content::NoHeader] {
        assert_eq!(patterns(content, [9]), [], "{content:?}");
    }
    assert_eq!(patterns(Content::Noise, [9, 10]), [pattern(PatternKind::Noise, (9, 10), 2)]);
    assert_eq!(patterns(Content::Changed, 9..900), [], "all that is known is in the findings");
}

#[test]
fn pages_that_are_not_in_use_do_not_end_a_run_and_other_pages_do() {
    let zero = |pages: &[u32]| pages.iter().map(|page| fact(*page, Content::Same(0))).collect::<Vec<_>>();
    let zeros = PatternKind::Same(0);
    assert_eq!(patterns_with(&zero(&[0, 1, 2, 6, 7]), &[3, 4, 5]), [pattern(zeros, (0, 7), 5)]);
    let two = [pattern(zeros, (0, 2), 3), pattern(zeros, (6, 7), 2)];
    assert_eq!(patterns_with(&zero(&[0, 1, 2, 6, 7]), &[3, 5]), two);
    let mut mixed = zero(&[0, 2]);
    mixed.push(fact(1, Content::Text));
    let kinds: Vec<PatternKind> = patterns_with(&mixed, &[1]).into_iter().map(|pattern| pattern.kind).collect();
    assert_eq!(kinds, [zeros, PatternKind::Text, zeros]);
    // A long part of the file that is not in use ends a run.
    let unused: Vec<u32> = (1..1000).collect();
    assert_eq!(patterns_with(&zero(&[0, 1000]), &unused).len(), 2);
}

#[test]
fn many_runs_of_one_content_are_one_pattern() {
    let pages = [1, 10, 12, 29, 51, 52, 98, 133, 250, 777];
    let found = patterns(Content::Same(0xFF), pages);
    assert_eq!(found, [Pattern { runs: 9, ..pattern(PatternKind::Same(0xFF), (1, 777), 10) }]);
}

#[test]
fn every_nth_page_or_block_is_one_pattern_with_its_distance() {
    let every = |every, runs, pattern| [Pattern { every: Some(every), runs, ..pattern }];
    let sixteenth = (1..40).map(|block| block * 16);
    let of = pattern(PatternKind::Headers, (16, 624), 39);
    assert_eq!(patterns(Content::NoHeader, sixteenth.clone()), every((16, 1), 39, of));
    // Some of the blocks are on pages that are not in use.
    let some = (1..40).filter(|block| block % 5 != 0).map(|block| block * 16 + 3);
    let of = pattern(PatternKind::Changed, (19, 627), 32);
    assert_eq!(patterns(Content::Changed, some), every((16, 1), 32, of));
    // 128 pages of each 2,048: 1 MB of each 16 MB.
    let blocks = (0..6).flat_map(|block| (0..128).map(move |page| block * 2048 + page));
    let of = pattern(PatternKind::Noise, (0, 10_367), 768);
    assert_eq!(patterns(Content::Noise, blocks.clone()), every((2048, 128), 6, of));
    // The same blocks, with sound pages in different places of each block.
    let holes = blocks.filter(|page| page % 7 != 3 && page % 2048 > 3);
    let found = patterns(Content::Noise, holes);
    assert_eq!(found.iter().map(|pattern| pattern.every).collect::<Vec<_>>(), [Some((2048, 124))]);
}

#[test]
fn pages_whose_other_bytes_are_random_belong_to_the_blocks_whose_headers_are_overwritten() {
    let content = |block| if block % 3 == 0 { Content::Noise } else { Content::NoHeader };
    let blocks: Vec<Fact> = (1..40).map(|block| fact(block * 16, content(block))).collect();
    let expected = Pattern { every: Some((16, 1)), runs: 39, ..pattern(PatternKind::Headers, (16, 624), 39) };
    assert_eq!(patterns_with(&blocks, &[]), [expected]);
    // Noise in another place has a pattern of its own, and so have the blocks.
    let more = [blocks, (1001..1009).map(|page| fact(page, Content::Noise)).collect()].concat();
    let kinds: Vec<PatternKind> = patterns_with(&more, &[]).iter().map(|pattern| pattern.kind).collect();
    assert_eq!(kinds, [PatternKind::Headers, PatternKind::Noise]);
}

#[test]
fn places_without_order_have_no_distance() {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u32
    };
    for runs in 1..400 {
        let mut places: Vec<(u32, u32)> = (0..runs).map(|_| next()).map(|first| (first, first)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(period(&places), None, "{places:?}");
    }
    for runs in [&[][..], &[(0, 0)], &[(0, 1), (8, 9), (16, 17)], &[(0, u32::MAX - 1); 4]] {
        assert_eq!(period(runs), None);
    }
}

#[test]
fn pages_that_are_off_by_the_same_distance_are_one_pattern_and_many_distances_are_one() {
    const WRAP: i64 = 1 << 19;
    assert_eq!(patterns(far(WRAP), 8..40), [pattern(far_kind(WRAP), (8, 39), 32)]);
    let swapped = [fact(8, far(12)), fact(20, far(-12))];
    assert_eq!(patterns_with(&swapped, &[]), [pattern(far_kind(12), (8, 8), 1), pattern(far_kind(-12), (20, 20), 1)]);
    let shuffled: Vec<Fact> = (0..50).map(|page| fact(page, far(i64::from(page * page) - 700))).collect();
    assert_eq!(patterns_with(&shuffled, &[]), [Pattern { runs: 50, ..pattern(far_kind(None), (0, 49), 50) }]);
    let foreign = |page| fact(page, Content::OtherPlace { file: 7, distance: 3, is_known: page < 3 });
    let facts: Vec<Fact> = (0..10).map(foreign).collect();
    let kind = PatternKind::OtherPlace { file: 7, distance: Some(3), has_file: false, is_unknown: true };
    assert_eq!(patterns_with(&facts, &[]), [pattern(kind, (0, 9), 10)]);
}

#[test]
fn a_pattern_needs_proofs_for_a_quarter_of_its_pages() {
    for (proven, is_listed) in [(0, false), (1, false), (2, true), (8, true)] {
        let facts: Vec<Fact> =
            (0..8).map(|page| Fact { is_doubtful: page >= proven, ..fact(page, Content::Noise) }).collect();
        assert_eq!(patterns_with(&facts, &[]).len(), usize::from(is_listed), "{proven}");
    }
}

#[test]
fn the_number_of_patterns_and_of_runs_is_bounded_and_nothing_is_lost_from_the_counts() {
    // Each page has a content of its own kind and file, so that nothing can be put together.
    let facts: Vec<Fact> = (0..200u16)
        .flat_map(|file| (0..100u32).map(move |page| (file, page)))
        .map(|(file, page)| Fact { page: PageId::new(file, page), ..fact(0, Content::Same((page % 7) as u8)) })
        .collect();
    let runs = Runs::of(facts.iter().copied(), |_| true);
    assert_eq!(runs.count, MOST_RUNS);
    let found = evaluate(&runs, &[FILE]);
    assert!(found.len() <= 200, "{}", found.len());
    assert_eq!(found.iter().map(|pattern| pattern.pages).sum::<u64>(), facts.len() as u64 - lost(&found, &runs));
}

/// Pages of files for which there is no room in the list.
fn lost(found: &[Pattern], runs: &Runs) -> u64 {
    let is_listed = |file: u16| found.iter().any(|pattern| pattern.file_id == file);
    let in_runs = runs.runs.iter().filter(|((file, _), _)| !is_listed(*file));
    let in_runs: u64 = in_runs.flat_map(|(_, runs)| runs).map(|run| u64::from(run.pages)).sum();
    in_runs + runs.rest.iter().filter(|(file, _)| !is_listed(**file)).map(|(_, (.., pages))| pages).sum::<u64>()
}

#[test]
fn a_fact_comes_back_whole_and_a_cut_one_does_not() {
    for content in [Content::Same(9), far(-77), Content::Shifted(i64::MIN), Content::Foreign] {
        let fact = Fact { is_doubtful: true, ..fact(u32::MAX, content) };
        let mut bytes = Vec::new();
        fact.write(&mut bytes);
        assert_eq!(Fact::read(&bytes), Some(fact));
        assert!((0..bytes.len()).all(|length| Fact::read(&bytes[..length]).is_none()));
    }
}

#[test]
fn findings_give_the_same_patterns_in_any_order_and_only_those_of_damaged_pages_count() {
    struct Nothing;
    impl PageSource for Nothing {
        fn files(&self) -> &[source::DataFile] {
            &[]
        }

        fn read(&self, first: PageId, _: &mut [u8]) -> Result<usize, source::ReadError> {
            Err(source::ReadError::NoSuchFile { file_id: first.file })
        }
    }
    let space = TempStore::default();
    let damaged = Damaged { source: &Nothing, survey: None, content: &|_, _| None, space: &space };
    let finding = |page, content| Finding::new(&registry::PAGE_ID).page(PageId::new(1, page)).content(content);
    let mut findings: Vec<Finding> = (0..40_000).map(|page| finding(page, Some(Content::Same(0)))).collect();
    findings.extend((50_000..50_100).map(|page| finding(page, None)));
    let expected = [pattern(PatternKind::Same(0), (0, 39_999), 40_000)];
    for turns in [0, 777, 39_999] {
        findings.rotate_left(turns);
        let found = damaged.patterns(&findings.clone().into(), &Findings::default());
        assert_eq!(found, expected);
    }
    assert_eq!(damaged.patterns(&Findings::default(), &findings.into()), [], "without a proof");
}
