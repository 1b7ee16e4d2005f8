//! Advice on damage to whole pages, extents, chains and files. As in the mutation matrix, `trials::mutate::damages`
//! makes the damage.

use std::collections::BTreeMap;

use advise::Action;
use format::allocation::FixedPage;
use lab::backup::{BackupOptions, Set, backup};
use lab::{Version, orders};
use trials::mutate::damages;

use super::*;

#[test]
#[ignore = "full tier: takes seconds"]
fn each_kind_of_broken_structure_has_the_steps_of_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&orders::orders(Version::V904, 5, 0), folder.path());
    let made = backup(&[Set { files: &files, step: 1, options: BackupOptions::default() }], folder.path(), "full");
    let backups = backups(&made.unwrap().files);
    let sound = open(&files);
    assert!(advice(&sound, Some(&backups)).1.steps.is_empty());
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut tried, mut restored) = (0, 0);
    for damage in damages(&sound, &catalog::load(&sound), None, 2) {
        let zeroed = damage.kind.starts_with("page zeroed") || damage.kind.starts_with("extent zeroed");
        let changed: BTreeSet<PageId> = damage.changes.iter().map(|(page, _)| *page).collect();
        let hurt = sound.with_pages(damage.changes).and_then(|files| match damage.cut {
            Some((file, length)) => files.cut(file, length),
            None => Ok(files),
        });
        let Ok(hurt) = hurt else {
            table.entry(damage.kind).or_default().insert("refused before anything is read".to_owned());
            continue;
        };
        tried += 1;
        let (report, plan) = advice(&hurt, Some(&backups));
        let what = format!("{} {}: {plan:#?}", damage.kind, damage.page);
        let based_on: BTreeSet<&str> = plan.steps.iter().flat_map(|step| step.rests_on.iter().copied()).collect();
        for finding in report.findings.iter() {
            assert!(based_on.contains(finding.check.id), "{}: {what}", finding.check.id);
        }
        for step in plan.steps.iter().filter(|step| step.action == Action::RestorePages) {
            restored += 1;
            assert!(!step.pages.is_empty() && step.pages.iter().all(|page| FixedPage::at(*page).is_none()), "{what}");
            assert!(!zeroed || step.pages.iter().all(|page| changed.contains(page)), "{what}");
        }
        let is_fixed = |page: &PageId| FixedPage::at(*page).is_some();
        let sql: String = plan.steps.iter().flat_map(|step| step.sql.iter().map(String::as_str)).collect();
        assert!(!(sql.contains("PAGE = '") && zeroed && changed.iter().any(is_fixed)), "{what}");
        let steps = match actions(&plan).as_slice() {
            [] => "nothing is found".to_owned(),
            actions => actions.join(", "),
        };
        table.entry(damage.kind).or_default().insert(steps);
    }
    assert!(tried > 300 && restored > 40, "{tried} pieces, {restored} restored by page");
    let rows = table.into_iter().flat_map(|(kind, steps)| {
        let heading = std::iter::once(format!("{kind}\n"));
        heading.chain(steps.into_iter().map(|steps| format!("    {steps}\n"))).collect::<Vec<_>>()
    });
    compare("structures.txt", &rows.collect::<String>());
}
