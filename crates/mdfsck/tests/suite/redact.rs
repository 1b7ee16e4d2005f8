//! `mdfsck lab redact`: what a user sees and gets.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn mdfsck(here: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(arguments).current_dir(here).output().unwrap()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(wide.len()).any(|window| window == wide)
}

#[test]
fn a_redacted_copy_has_the_findings_but_not_the_names_and_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert_eq!(mdfsck(here, &["lab", "new", "db", "--size", "3MB"]).status.code(), Some(0));
    assert_eq!(mdfsck(here, &["lab", "damage", "db", "-o", "hurt", "--kind", "key-order"]).status.code(), Some(0));
    let done = mdfsck(here, &["lab", "redact", "hurt", "-o", "out"]);
    let said = String::from_utf8(done.stdout).unwrap();
    // Some columns of the lab's schema are computed, so some values stay.
    assert_eq!(done.status.code(), Some(16), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(
        said.contains("findings of the original and of the copy: 1") && said.contains("kept: order_lines.amount"),
        "{said}"
    );
    let name = fs::read_dir(here.join("out")).unwrap().next().unwrap().unwrap().file_name();
    let [old, new] = ["hurt", "out"].map(|dir| fs::read(here.join(dir).join(&name)).unwrap());
    assert_eq!(old.len(), new.len());
    assert!(contains(&old, "order_lines") && !contains(&new, "order_lines"));
    assert!(contains(&new, "sysallocunits"), "names of the system stay");
    let findings = |dir: &str| {
        let checked = mdfsck(here, &["check", dir, "--json"]);
        let lines = String::from_utf8(checked.stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let findings = lines.filter(|line| line["kind"] == "finding");
        findings.map(|line| ["msg", "file", "page", "slot"].map(|name| line[name].clone())).collect::<Vec<_>>()
    };
    let found = findings("hurt");
    assert!(found.iter().any(|[message, _, page, _]| *message == 2511 && page.is_u64()), "{found:?}");
    assert_eq!(found, findings("out"));
    let again = mdfsck(here, &["lab", "redact", "hurt", "-o", "out"]);
    assert_eq!(again.status.code(), Some(8));
    assert!(String::from_utf8(again.stderr).unwrap().contains("will not be overwritten"));
}

#[test]
#[cfg(unix)]
fn a_link_with_the_name_of_the_copy_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert_eq!(mdfsck(here, &["lab", "new", "db", "--schema", "entries", "--size", "3MB"]).status.code(), Some(0));
    let name = fs::read_dir(here.join("db")).unwrap().next().unwrap().unwrap().file_name();
    for (command, more) in [("redact", &[][..]), ("damage", &["--kind", "bit-rot"])] {
        // A link without a target does not exist for most calls, but it has the name.
        let link = here.join(command).join(&name);
        fs::create_dir(here.join(command)).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let done = mdfsck(here, &[&["lab", command, "db", "-o", command], more].concat());
        assert_eq!(done.status.code(), Some(8), "{command}");
        assert!(String::from_utf8(done.stderr).unwrap().contains("will not be overwritten"), "{command}");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"), "{command}");
        assert_eq!(fs::read_dir(here.join(command)).unwrap().count(), 1, "{command}");
    }
}

#[test]
#[cfg(unix)]
fn nobody_may_read_a_copy_who_may_not_read_the_original() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert_eq!(mdfsck(here, &["lab", "new", "db", "--schema", "entries", "--size", "3MB"]).status.code(), Some(0));
    let original = fs::read_dir(here.join("db")).unwrap().next().unwrap().unwrap().path();
    for (mode, expected) in [(0o600, 0o600), (0o400, 0o600), (0o440, 0o640)] {
        fs::set_permissions(&original, fs::Permissions::from_mode(mode)).unwrap();
        for (command, more) in [("redact", &[][..]), ("damage", &["--kind", "bit-rot"])] {
            let out = format!("{command}-{mode:o}");
            mdfsck(here, &[&["lab", command, "db", "-o", &out], more].concat());
            let copy = fs::metadata(here.join(&out).join(original.file_name().unwrap())).unwrap();
            // The umask of the test may take more.
            assert_eq!(copy.permissions().mode() & 0o777 & !expected, 0, "{out}");
            assert_eq!(copy.permissions().mode() & 0o600, 0o600, "{out}");
        }
    }
}
