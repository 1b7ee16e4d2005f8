//! `mdfsck chain --verify` restores lab chains in memory. It must find a damaged page and a damaged log.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lab::workload::{ChainOptions, SetKind, Spec, Workload};
use serde_json::Value;

const KINDS: [SetKind; 4] = [SetKind::Full, SetKind::Log, SetKind::Differential, SetKind::Log];

fn verify(folder: &Path) -> (Value, Output) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mdfsck")).args(["chain", "--verify", "--json"]).arg(folder).output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    (line["chains"][0]["verified"].clone(), output)
}

#[test]
fn a_chain_is_restored_in_memory_and_damage_of_its_log_or_pages_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let workload = Workload::new(Spec { seed: 3, transactions: 60, ..Spec::default() }).unwrap();
    let chain = workload.chain(&KINDS, ChainOptions::default(), folder.path()).unwrap();
    let (verified, output) = verify(folder.path());
    assert_eq!((output.status.code(), &verified["state"]), (Some(0), &"sound".into()), "{verified}");
    assert!(verified["pages"].as_u64().unwrap() > 100 && verified["log_blocks"].as_u64().unwrap() > 20, "{verified}");
    assert!(verified["recovered_pages"].as_u64().unwrap() > 20, "{verified}");

    // Damages the middle of the last log backup in the first round, and a catalog page in the full backup in the second
    // round.
    let (log, full) = (&chain.sets[3].files[0], &chain.sets[0].files[0]);
    for (path, word) in [(log, "damaged"), (full, "consistency errors in system catalogs")] {
        let sound = fs::read(path).unwrap();
        let mut bytes = sound.clone();
        let pages = bytes.windows(4).position(|tag| tag == b"MQDA").map(|tag| tag + 24);
        let at = pages.filter(|_| path == full).map_or(bytes.len() / 2, |pages| pages + 57 * 8192 + 200);
        bytes[at..at + 1024].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(path, &bytes).unwrap();
        let (verified, output) = verify(folder.path());
        assert_eq!(output.status.code().map(|status| status & 1), Some(1), "{path:?}: {verified}");
        assert_eq!(verified["state"], "errors", "{path:?}: {verified}");
        let first = verified["first_error"].as_str().unwrap();
        assert!(first.contains(word), "{first}");
        fs::write(path, sound).unwrap();
    }
}
