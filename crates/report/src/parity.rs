//! For each message of CHECKDB: what this program does in its place. docs/parity.md is written from this table.

use std::fmt::Write as _;
use std::sync::LazyLock;

use findings::registry::Check;
use findings::registry::limits::Limit;

use crate::explain::{escaped, fault};
use crate::server_messages::ServerMessage;

/// One line for each message: number, state, the checks, numbers or limits, the trial, and the reason.
const TABLE: &str = include_str!("parity/table.tsv");

/// The start of docs/parity.md.
const PREFACE: &str = "# Each message of CHECKDB

For DBAs who want to know what `DBCC CHECKDB` would find and mdfsck would not. The table has one row for each message that CHECKDB,
CHECKTABLE, CHECKALLOC, CHECKCATALOG and CHECKFILEGROUP can print, and for the repairs of these commands. Generated from
`crates/report/src/parity/table.tsv` by `mdfsck explain --all --parity --markdown`; do not edit.

";

/// The reason for all messages about repairs.
const NO_REPAIR: &str = "mdfsck never repairs";
/// Stands in the column of the checks for a message that is a line of the output, and no finding.
const LINE: &str = "line";

/// What this program does in place of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// A check reports the message, or the output has the message as a line.
    Found,
    /// Another message reports the same damage.
    OtherNumber,
    /// A limit says that the damage is not looked for.
    NotVerified,
    /// Reading files cannot lead to the message.
    Offline,
    /// This program does not make the check.
    NotBuilt,
}

impl State {
    const ALL: [Self; 5] = [Self::Found, Self::OtherNumber, Self::NotVerified, Self::Offline, Self::NotBuilt];

    /// The name in the table.
    fn id(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::OtherNumber => "other-number",
            Self::NotVerified => "not-verified",
            Self::Offline => "offline",
            Self::NotBuilt => "not-built",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Found => "found here",
            Self::OtherNumber => "found under another number",
            Self::NotVerified => "not verified",
            Self::Offline => "cannot occur offline",
            Self::NotBuilt => "not built",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Found => {
                "a check of mdfsck reports the message and a trial shows it, or the message is a line of the output"
            }
            Self::OtherNumber => "mdfsck reports the same damage in another message",
            Self::NotVerified => "a limit says so in the output, and sets bit 16 of the exit status",
            Self::Offline => "the message is about a server, its locks, its snapshot or its repairs",
            Self::NotBuilt => "mdfsck does not look for this damage, or does not print this line",
        }
    }
}

/// A message of CHECKDB.
struct Row {
    number: u16,
    state: State,
    /// Ids of checks, other message numbers, or ids of limits.
    by: Vec<&'static str>,
    /// The file, within `crates`, and the name of a test that shows the message.
    trial: Option<(&'static str, &'static str)>,
    why: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| TABLE.lines().filter_map(row).collect());

fn row(line: &'static str) -> Option<Row> {
    let mut cells = line.split('\t');
    let mut cell = || cells.next().unwrap_or_default();
    let (number, state) = (cell().parse().ok()?, cell());
    Some(Row {
        number,
        state: State::ALL.into_iter().find(|known| known.id() == state)?,
        by: cell().split(',').filter(|id| !id.is_empty()).collect(),
        trial: cell().split_once(": "),
        why: cell(),
    })
}

fn find(number: u32) -> Option<&'static Row> {
    let at = ROWS.binary_search_by_key(&number, |row| row.number.into()).ok()?;
    ROWS.get(at)
}

/// Whether CHECKDB prints a message with this number.
pub fn is_message_of_checkdb(number: u32) -> bool {
    find(number).is_some()
}

/// Whether the message is about a repair.
pub fn is_repair(number: u32) -> bool {
    find(number).is_some_and(|row| row.why == NO_REPAIR)
}

fn is_in_state(number: u32, states: &[State]) -> bool {
    find(number).is_some_and(|row| states.contains(&row.state) && row.by != [LINE])
}

/// Whether a check of this program has the message.
pub fn has_check(number: u32) -> bool {
    is_in_state(number, &[State::Found])
}

/// Whether the message is about damage that this program finds, reports in another message, or lists as not verified.
pub fn is_of_damage(number: u32) -> bool {
    is_in_state(number, &[State::Found, State::OtherNumber, State::NotVerified])
}

/// Whether this program reports the damage of the message `number` in the message `other`.
pub fn is_in(number: u32, other: u32) -> bool {
    let is_other = |row: &Row| row.by.iter().any(|by| by.parse() == Ok(other));
    find(number).is_some_and(|row| row.state == State::OtherNumber && is_other(row))
}

/// The limits that say that the damage of the message is not looked for.
pub fn limits(number: u32) -> impl Iterator<Item = &'static Limit> {
    let row = find(number).filter(|row| row.state == State::NotVerified);
    row.into_iter().flat_map(|row| row.by.iter().filter_map(|id| Limit::find(id)))
}

/// The numbers of all messages of CHECKDB.
#[cfg(test)]
pub(crate) fn numbers() -> impl Iterator<Item = u32> {
    ROWS.iter().map(|row| row.number.into())
}

/// Whether this program makes no check for the message.
#[cfg(test)]
pub(crate) fn is_not_built(number: u32) -> bool {
    is_in_state(number, &[State::NotBuilt])
}

/// The counts of each state, as a sentence.
fn counts() -> String {
    let count = |state| ROWS.iter().filter(|row| row.state == state).count();
    let lines = ROWS.iter().filter(|row| row.by == [LINE]).count();
    let found = count(State::Found);
    format!(
        "CHECKDB has {} messages. mdfsck finds the damage of {} and prints {lines} as lines of its output. It finds the damage of \
         {} more under another number, lists {} as not verified, and has not built {}. The other {} cannot occur offline.",
        ROWS.len(),
        found - lines,
        count(State::OtherNumber),
        count(State::NotVerified),
        count(State::NotBuilt),
        count(State::Offline),
    )
}

/// The text of docs/parity.md.
pub fn markdown() -> String {
    let mut text = format!("{PREFACE}{}\n\n| state | messages | meaning |\n|---|---|---|\n", counts());
    for state in State::ALL {
        let count = ROWS.iter().filter(|row| row.state == state).count();
        let _ = writeln!(text, "| {} | {count} | {} |", state.title(), state.meaning());
    }
    let [checks, limits] = ["checks", "limits"].map(|name| format!("[{name}.md]({name}.md)"));
    let _ = write!(
        text,
        "\n{checks} explains the checks, {limits} the limits, and `mdfsck explain NUMBER` each message. \
         A trial is named by its file in `crates` and its name; CONTRIBUTING.md says how to run it.\n\n\
         | message | about | state | by | trial | why |\n|---|---|---|---|---|---|\n",
    );
    for row in ROWS.iter() {
        let by: Vec<String> = match row.by.as_slice() {
            [LINE] => vec!["a line of the output".to_owned()],
            by => by.iter().map(|id| format!("`{id}`")).collect(),
        };
        let trial = row.trial.map_or_else(String::new, |(file, name)| format!("`{file}`: {}", escaped(name)));
        let (number, state) = (row.number, row.state.title());
        let _ = writeln!(
            text,
            "| {number} | {} | {state} | {} | {trial} | {} |",
            escaped(&title(number)),
            by.join(", "),
            escaped(row.why)
        );
    }
    text
}

/// What a message is about, in a few words.
fn title(number: u16) -> String {
    let of_check = || Check::find(&number.to_string()).first().map(|check| fault(check));
    ServerMessage::find(number).map(|message| message.title.to_owned()).or_else(of_check).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use findings::registry::ALL;

    use super::*;

    /// The numbers of all messages that DBCC CHECKDB and the commands that are part of it can print.
    #[rustfmt::skip]
    const NUMBERS: [u16; 285] = [
        2501, 2508, 2511, 2512, 2515, 2516, 2517, 2518, 2519, 2522, 2527, 2528, 2530, 2531, 2533, 2534, 2536,
        2537, 2538, 2539, 2540, 2546, 2558, 2570, 2574, 2575, 2576, 2577, 2579, 2589, 2592, 2593, 2594, 2595,
        2596, 2598, 3851, 3852, 3853, 3854, 3855, 3856, 3857, 3858, 3859, 5228, 5229, 5230, 5231, 5232, 5233,
        5235, 5237, 5242, 5243, 5244, 5245, 5247, 5248, 5250, 5253, 5256, 5260, 5262, 5263, 5264, 5265, 5266,
        5267, 5268, 5269, 5271, 5274, 5275, 5276, 5277, 5278, 5279, 5280, 5281, 5282, 5283, 5284, 5285, 5288,
        5289, 5290, 5291, 5292, 5293, 5294, 5296, 5297, 5299, 7901, 7902, 7903, 7904, 7905, 7906, 7907, 7908,
        7909, 7910, 7911, 7912, 7913, 7914, 7915, 7916, 7917, 7918, 7919, 7920, 7921, 7922, 7923, 7924, 7925,
        7926, 7927, 7928, 7929, 7930, 7931, 7932, 7933, 7934, 7935, 7936, 7937, 7938, 7941, 7951, 7956, 7959,
        7961, 7963, 7964, 7965, 7966, 7967, 7973, 7976, 7981, 7983, 7984, 7985, 7986, 7987, 7988, 7991, 7994,
        7995, 8901, 8902, 8903, 8904, 8905, 8906, 8907, 8908, 8909, 8910, 8911, 8912, 8913, 8914, 8915, 8916,
        8917, 8918, 8919, 8920, 8921, 8922, 8923, 8924, 8925, 8926, 8927, 8928, 8929, 8930, 8931, 8932, 8933,
        8934, 8935, 8936, 8937, 8938, 8939, 8940, 8941, 8942, 8943, 8944, 8945, 8946, 8947, 8948, 8949, 8950,
        8951, 8952, 8953, 8954, 8955, 8956, 8957, 8958, 8959, 8960, 8961, 8962, 8963, 8964, 8965, 8966, 8967,
        8968, 8969, 8970, 8971, 8972, 8973, 8974, 8975, 8976, 8977, 8978, 8979, 8980, 8981, 8982, 8983, 8984,
        8985, 8986, 8988, 8989, 8990, 8992, 8993, 8994, 8995, 8996, 8997, 8998, 8999, 9605, 9667, 9668, 9669,
        9670, 9671, 9672, 9673, 9674, 9675, 9676, 9677, 9678, 9679, 9680, 9681, 9682, 9683, 9684, 9685, 9686,
        9687, 9705, 9706, 9707, 9708, 9709, 9710, 9711, 9712, 9713, 9716, 9725, 9726,
    ];

    #[test]
    fn every_message_of_checkdb_has_exactly_one_row() {
        assert!(TABLE.lines().all(|line| row(line).is_some()), "a line cannot be read");
        let numbers: Vec<u16> = ROWS.iter().map(|row| row.number).collect();
        assert_eq!(numbers, NUMBERS);
        assert!(numbers.iter().all(|&number| !title(number).is_empty()));
    }

    #[test]
    fn what_a_row_names_exists() {
        for Row { number, state, by, trial, why } in ROWS.iter() {
            let ids: Vec<&str> = by.iter().copied().filter(|id| *id != LINE).collect();
            match state {
                State::Found => {
                    let is_check = |id: &&str| ALL.iter().any(|check| check.id == *id && shows(check, *number));
                    assert!(!by.is_empty() && ids.iter().all(is_check), "{number}: {by:?}");
                    assert!(trial.is_some(), "{number}: no trial shows it");
                }
                State::OtherNumber => {
                    let is_other = |id: &&str| {
                        id.parse::<u16>()
                            .is_ok_and(|other| !Check::find(id).is_empty() || other == 2538 || other == 8915)
                    };
                    assert!(ids.iter().all(is_other), "{number}: {by:?}");
                }
                State::NotVerified => {
                    let is_limit = |id: &&str| Limit::find(id).is_some_and(|limit| !limit.is_note());
                    assert!(!ids.is_empty() && ids.iter().all(is_limit), "{number}: {by:?}");
                }
                State::Offline | State::NotBuilt => assert!(by.is_empty(), "{number}"),
            }
            assert!(*state == State::Found || (trial.is_none() && !why.is_empty()), "{number}: no reason");
        }
    }

    /// Whether findings of a check have this number, or the number is inside the text of the wrapper.
    fn shows(check: &Check, number: u16) -> bool {
        check.msg == number || check.template.contains(&format!(" Msg {number}, State "))
    }

    #[test]
    fn every_check_stands_in_the_row_of_its_message() {
        for check in ALL.iter().filter(|check| !check.is_beyond_checkdb()) {
            let row = find(check.msg.into()).unwrap_or_else(|| panic!("{}: {} has no row", check.id, check.msg));
            assert!(row.state == State::Found && row.by.contains(&check.id), "{}: {:?}", check.id, row.by);
        }
    }

    /// The name of a trial is a text in its file, or the name of a test function there.
    #[test]
    fn the_trials_exist() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Row { number, trial, .. } in ROWS.iter() {
            let Some((file, name)) = trial else { continue };
            let text =
                fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{number}: {file}: {error}"));
            let is_there = text.contains(&format!("\"{name}\"")) || text.contains(&format!("fn {name}("));
            assert!(is_there, "{number}: {file} has no trial {name:?}");
        }
    }

    #[test]
    fn docs_and_readme_are_those_of_the_table() {
        let read = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
            fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n")
        };
        assert!(
            read("docs/parity.md") == markdown(),
            "docs/parity.md differs from the table; regenerate it with\n  \
             cargo run -- explain --all --parity --markdown > docs/parity.md"
        );
        let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(readme.contains(&counts()), "README.md must say: {}", counts());
    }

    #[test]
    fn repairs_and_foreign_numbers_are_known_as_such() {
        let repairs: BTreeSet<u16> = NUMBERS.into_iter().filter(|&number| is_repair(number.into())).collect();
        assert!(repairs.contains(&8911) && repairs.contains(&8945) && !repairs.contains(&8939));
        assert!(is_message_of_checkdb(8939) && !is_message_of_checkdb(824) && !is_message_of_checkdb(0));
    }
}
