//! `mdfsck explain`: every message number that a DBA may see, search words with typing errors, and the list of all
//! entries.

use std::collections::BTreeSet;
use std::path::Path;

use findings::registry::{self, limits};
use libtest_mimic::Failed;
use serde_json::Value;

use super::{Test, ensure, mdfsck, refused, text};

/// The message numbers of DBCC, and the message numbers that SQL Server writes to error logs or reports during restores
/// and queries of damaged databases.
#[rustfmt::skip]
const NUMBERS: [u16; 311] = [
    601, 605, 644, 665, 823, 824, 825, 829, 832, 926, 945, 2501, 2508, 2511, 2512, 2515, 2516, 2517, 2518,
    2519, 2522, 2527, 2528, 2530, 2531, 2533, 2534, 2536, 2537, 2538, 2539, 2540, 2546, 2558, 2570, 2574,
    2575, 2576, 2577, 2579, 2589, 2592, 2593, 2594, 2595, 2596, 2598, 3013, 3132, 3154, 3201, 3203, 3241,
    3271, 3414, 3851, 3852, 3853, 3854, 3855, 3856, 3857, 3858, 3859, 5171, 5172, 5173, 5228, 5229, 5230,
    5231, 5232, 5233, 5235, 5237, 5242, 5243, 5244, 5245, 5247, 5248, 5250, 5253, 5256, 5260, 5262, 5263,
    5264, 5265, 5266, 5267, 5268, 5269, 5271, 5274, 5275, 5276, 5277, 5278, 5279, 5280, 5281, 5282, 5283,
    5284, 5285, 5288, 5289, 5290, 5291, 5292, 5293, 5294, 5296, 5297, 5299, 7105, 7901, 7902, 7903, 7904,
    7905, 7906, 7907, 7908, 7909, 7910, 7911, 7912, 7913, 7914, 7915, 7916, 7917, 7918, 7919, 7920, 7921,
    7922, 7923, 7924, 7925, 7926, 7927, 7928, 7929, 7930, 7931, 7932, 7933, 7934, 7935, 7936, 7937, 7938,
    7941, 7951, 7956, 7959, 7961, 7963, 7964, 7965, 7966, 7967, 7973, 7976, 7981, 7983, 7984, 7985, 7986,
    7987, 7988, 7991, 7994, 7995, 8901, 8902, 8903, 8904, 8905, 8906, 8907, 8908, 8909, 8910, 8911, 8912,
    8913, 8914, 8915, 8916, 8917, 8918, 8919, 8920, 8921, 8922, 8923, 8924, 8925, 8926, 8927, 8928, 8929,
    8930, 8931, 8932, 8933, 8934, 8935, 8936, 8937, 8938, 8939, 8940, 8941, 8942, 8943, 8944, 8945, 8946,
    8947, 8948, 8949, 8950, 8951, 8952, 8953, 8954, 8955, 8956, 8957, 8958, 8959, 8960, 8961, 8962, 8963,
    8964, 8965, 8966, 8967, 8968, 8969, 8970, 8971, 8972, 8973, 8974, 8975, 8976, 8977, 8978, 8979, 8980,
    8981, 8982, 8983, 8984, 8985, 8986, 8988, 8989, 8990, 8992, 8993, 8994, 8995, 8996, 8997, 8998, 8999,
    9002, 9003, 9004, 9605, 9667, 9668, 9669, 9670, 9671, 9672, 9673, 9674, 9675, 9676, 9677, 9678, 9679,
    9680, 9681, 9682, 9683, 9684, 9685, 9686, 9687, 9705, 9706, 9707, 9708, 9709, 9710, 9711, 9712, 9713,
    9716, 9725, 9726,
];

/// The message numbers, and numbers of operating system errors, in public reports of damaged databases.
#[rustfmt::skip]
const REPORTED: [u16; 184] = [
    112, 211, 547, 596, 601, 605, 644, 665, 701, 802, 823, 824, 825, 829, 832, 833,
    844, 845, 846, 847, 854, 855, 856, 916, 926, 945, 976, 1105, 1117, 1130, 1450, 1813,
    1823, 2508, 2511, 2512, 2528, 2533, 2534, 2536, 2537, 2570, 2573, 2575, 2576, 2593, 3013, 3027,
    3043, 3132, 3136, 3154, 3159, 3183, 3189, 3201, 3203, 3219, 3241, 3242, 3243, 3257, 3266, 3270,
    3271, 3313, 3414, 3437, 3448, 3452, 3456, 3624, 3633, 3634, 3859, 4305, 4312, 4326, 5030, 5105,
    5106, 5120, 5123, 5128, 5171, 5172, 5173, 5180, 5228, 5233, 5235, 5237, 5239, 5242, 5243, 5260,
    5262, 5274, 5275, 5281, 5283, 5288, 5296, 5571, 5572, 5901, 7105, 7904, 7905, 7907, 7908, 7926,
    7928, 7966, 7985, 7989, 7995, 7998, 8645, 8646, 8649, 8901, 8903, 8904, 8905, 8906, 8907, 8908,
    8909, 8913, 8914, 8921, 8928, 8929, 8930, 8939, 8941, 8942, 8944, 8945, 8946, 8947, 8948, 8951,
    8952, 8954, 8955, 8956, 8957, 8958, 8959, 8961, 8964, 8965, 8966, 8967, 8968, 8969, 8970, 8974,
    8976, 8978, 8980, 8989, 8990, 8992, 8996, 8998, 9001, 9002, 9003, 9004, 9642, 17053, 17113, 17204,
    17207, 17573, 17883, 18210, 18272, 33111, 33126, 41316,
];

/// All numbers that must be explained, each once.
fn all_numbers() -> BTreeSet<u16> {
    NUMBERS.into_iter().chain(REPORTED).collect()
}

pub(crate) fn explanations() -> Vec<(&'static str, Test)> {
    vec![
        ("explain says what each number means, what to look at and what to do", every_number),
        ("explain shows all three parts as text", |folder| {
            let has = |key: &str, parts: &[&str]| {
                let output = text(&mdfsck(folder, &["explain", key]).stdout);
                ensure(parts.iter().all(|part| output.contains(part)), output)
            };
            has("823", &["Msg 823: ", "what it means", "what to look at", "what to do"])?;
            has("8976", &["tree.child-unseen: Msg 8976", "  rule  ", "  cause  ", "what to do"])?;
            // A check reports message 824 only for a lost write. SQL Server reports message 824 for any page that
            // differs from the page that it wrote, so the explanation must cover this meaning too.
            has("824", &["log.lost-write", "Msg 824: a page is not what was written"])?;
            has("tree.compressed-entries", &["not verified, undocumented", "what to do"])
        }),
        ("explain reads numbers and ids as they are pasted", |folder| {
            let by_number = mdfsck(folder, &["explain", "8976"]).stdout;
            for pasted in [
                &["Msg 8976"][..],
                &["MSG8976"],
                &["Msg 8976, Level 16, State 1, Line 1"],
                &["Msg", "8976,", "Level", "16,", "State", "1"],
                &["Error: 8976, Severity: 16, State: 1."],
                &["Tree.Child-Unseen"],
            ] {
                let output = mdfsck(folder, &[&["explain"], pasted].concat());
                ensure(!by_number.is_empty() && output.stdout == by_number, format!("{pasted:?}"))?;
            }
            Ok(())
        }),
        ("explain offers the nearest to what it does not know", |folder| {
            for (key, near) in [
                ("2567", &["did you mean 2576, 2577, 2537, 2527 or 2517?"][..]),
                ("8976x", &["did you mean 8976"]),
                ("tree", &["tree.chain-linkage"]),
                ("tree.chlid-unseen", &["did you mean tree.child-unseen"]),
                ("zzzzzzzz", &["'mdfsck explain' lists all"]),
            ] {
                refused(&mdfsck(folder, &["explain", key]), 8, &[&[key], near].concat())?;
            }
            // A number of another subject is not offered, even if it differs by one digit only: 1117 is an error of the
            // operating system, and 8976 is about trees, but no message of DBCC begins with 87.
            for key in ["zzzzzzzz", "8796", "82", "897", "1116", "4500", "99999", "834567"] {
                let output = mdfsck(folder, &["explain", key]);
                let near = text(&output.stderr);
                ensure(output.status.code() == Some(8) && !near.contains("did you mean"), near)?;
            }
            refused(&mdfsck(folder, &["explain", "8976", "8796"]), 8, &["8796"])
        }),
        ("explain without argument lists all, sorted, in 80 columns", whole_list),
        ("explain names only commands and options that exist", named_commands),
    ]
}

fn json(folder: &Path, arguments: &[&str]) -> Result<Vec<Value>, Failed> {
    let output = mdfsck(folder, &[&["explain", "--json"], arguments].concat());
    ensure(output.status.code() == Some(0), text(&output.stderr))?;
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).map_err(Failed::from)).collect()
}

fn every_number(folder: &Path) -> Result<(), Failed> {
    let keys: Vec<String> = all_numbers().iter().map(u16::to_string).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut explained = BTreeSet::new();
    for line in json(folder, &keys)? {
        let parts = match line["kind"].as_str() {
            Some("explained_check") => ["must_be_true", "cause", "action"],
            Some("explained_message") => ["meaning", "look_at", "action"],
            _ => return Err(line.to_string().into()),
        };
        let is_whole = parts.iter().all(|part| line[part].as_str().is_some_and(|text| text.ends_with(['.', '?'])));
        ensure(is_whole, line.to_string())?;
        explained.extend(line["number"].as_u64());
    }
    let numbers = all_numbers();
    let missing: Vec<_> = numbers.iter().filter(|number| !explained.contains(&u64::from(**number))).collect();
    ensure(missing.is_empty(), format!("{missing:?}"))
}

fn whole_list(folder: &Path) -> Result<(), Failed> {
    let list = json(folder, &[])?;
    let numbers: Vec<u64> = list.iter().filter_map(|line| line["number"].as_u64()).collect();
    ensure(numbers.is_sorted() && all_numbers().iter().all(|number| numbers.contains(&u64::from(*number))), "numbers")?;
    let ids: Vec<&str> = list.iter().filter_map(|line| line["id"].as_str()).collect();
    let all = registry::ALL.iter().map(|check| check.id).chain(limits::ALL.iter().map(|limit| limit.id));
    ensure(all.collect::<BTreeSet<_>>() == ids.iter().copied().collect(), "ids")?;
    // Entries for limits of mdfsck have no message number. In the list, they follow the numbered entries and are
    // ordered by ID.
    let (numbered, others) = list.split_at(numbers.len());
    ensure(numbered.iter().all(|line| line["number"].is_number()), "a number behind the limits")?;
    ensure(others.len() == limits::ALL.len(), "limits")?;
    ensure(others.is_sorted_by_key(|line| line["id"].to_string()), "order of limits")?;
    let printed = text(&mdfsck(folder, &["explain"]).stdout);
    ensure(printed.lines().count() == list.len(), "lines")?;
    for (line, entry) in printed.lines().zip(&list) {
        let number = entry["number"].as_u64().map(|number| number.to_string()).unwrap_or_default();
        let begins = format!("{number:<5}  {}", entry["id"].as_str().unwrap_or_default());
        ensure(line.chars().count() <= 80 && line.starts_with(&begins), line)?;
    }
    Ok(())
}

/// Requires that each `'mdfsck ...'` in an explanation names an existing command, and that the help of this command
/// lists every option in the explanation.
fn named_commands(folder: &Path) -> Result<(), Failed> {
    let keys: Vec<String> = all_numbers().iter().map(u16::to_string).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut named = BTreeSet::new();
    for line in json(folder, &keys)? {
        for part in ["meaning", "look_at", "action"] {
            let parts = line[part].as_str().unwrap_or_default().split("'mdfsck ").skip(1);
            named.extend(parts.filter_map(|rest| rest.split_once('\'')).map(|(command, _)| command.to_owned()));
        }
    }
    ensure(named.contains("check --table") && named.contains("audit"), format!("{named:?}"))?;
    for command in named {
        let mut words = command.split(' ');
        let help = mdfsck(folder, &[words.next().unwrap_or_default(), "--help"]);
        let shown = text(&help.stdout);
        ensure(help.status.success(), command.clone())?;
        for option in words.filter(|word| word.starts_with("--")) {
            ensure(shown.contains(option), format!("{command}: {option}"))?;
        }
    }
    Ok(())
}
