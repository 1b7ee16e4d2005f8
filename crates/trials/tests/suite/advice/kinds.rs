//! The kinds of damage that the lab can make.

use std::fmt::Write;

use lab::backup::{BackupOptions, Set, backup};
use lab::damage::{Kind, damage};
use lab::{Version, orders};

use super::*;

/// Seeds for each kind of damage. Different seeds damage different tables, indexes and pages.
const SEEDS: [u64; 3] = [3, 5, 8];

#[test]
fn each_kind_of_damage_has_the_steps_of_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&orders::orders(Version::V904, 5, 9 << 20), folder.path());
    let made = backup(&[Set { files: &files, step: 1, options: BackupOptions::default() }], folder.path(), "full");
    let backups = backups(&made.unwrap().files);
    let sound = fs::read(&files[0]).unwrap();
    let mut table = String::new();
    for kind in Kind::ALL {
        for seed in SEEDS {
            fs::write(&files[0], &sound).unwrap();
            let done = damage(&files, kind, seed).unwrap();
            let hurt = open(&files);
            let pages: Vec<String> = done.pages.iter().map(|page| format!("({}:{})", page.file, page.page)).collect();
            writeln!(table, "{} {}", kind.name(), pages.join(" ")).unwrap();
            for (backups, heading) in [(None, "without a backup"), (Some(&backups), "with a backup")] {
                let (report, plan) = advice(&hurt, backups);
                writeln!(table, "  {heading}: {}", plan.situation.name()).unwrap();
                plan.steps.iter().for_each(|step| writeln!(table, "{}", line(step)).unwrap());
                let based_on: BTreeSet<&str> =
                    plan.steps.iter().flat_map(|step| step.rests_on.iter().copied()).collect();
                for finding in report.findings.iter() {
                    assert!(based_on.contains(finding.check.id), "{}: {}", done.what, finding.check.id);
                }
            }
        }
    }
    compare("kinds.txt", &table);
}
