//! Parses scripts of advice with programs that share no code with mdfsck (`tsql.py`). No server runs the scripts.

use std::process::Command;

use lab::backup::{BackupOptions, Base, Set, backup};
use lab::damage::{Kind, damage};
use lab::{PageVerify, Version, orders, specimens};

use super::*;

#[test]
#[ignore = "full tier: takes seconds"]
fn every_statement_is_t_sql_to_other_programs() {
    let python = match environment::python() {
        Ok(python) => python,
        Err(why) => return trials::tools::skip(environment::TOOL, &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut scripts = Vec::new();
    let descriptions = [
        orders::orders(Version::V904, 5, 9 << 20),
        specimens::specimen(Version::V904, PageVerify::Checksum, 5),
        specimens::specimen(Version::V661, PageVerify::Checksum, 6),
    ];
    for (number, description) in descriptions.iter().enumerate() {
        let here = folder.path().join(number.to_string());
        let files = write(description, &here);
        let sound: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
        let full = Set { files: &files, step: 1, options: BackupOptions::default() };
        let made = backup(&[full], &here, "it's a full").unwrap().files;
        let base = Some(Base { files: &files, step: 1 });
        let later = Set { files: &files, step: 2, options: BackupOptions { base, ..BackupOptions::default() } };
        let both = [made.clone(), backup(&[later], &here, "later").unwrap().files].concat();
        let given = [None, Some(backups(&made)), Some(backups(&both))];
        for kind in Kind::ALL {
            for seed in 0..3 {
                files.iter().zip(&sound).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
                if damage(&files, kind, seed).is_err() {
                    continue;
                }
                let hurt = open(&files);
                for (at, backups) in given.iter().enumerate() {
                    let (_, plan) = advice(&hurt, backups.as_ref());
                    let path = folder.path().join(format!("{number}-{}-{seed}-{at}.sql", kind.name()));
                    let mut script = Vec::new();
                    report::advise::write_script(&plan, &mut script).unwrap();
                    fs::write(&path, script).unwrap();
                    scripts.push(path);
                }
            }
        }
    }
    assert!(scripts.len() > 200, "{} scripts", scripts.len());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/advice/tsql.py");
    let output = Command::new(python).arg(program).args(&scripts).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{} scripts: {}", scripts.len(), text.lines().next().unwrap_or_default());
    assert!(output.status.success(), "{text}{errors}");
}
