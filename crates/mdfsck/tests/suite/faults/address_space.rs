//! Tests with limits on the address space. The memory grant and the overhead that `--help` promises must together be
//! sufficient. With a smaller address space, the program must not write partial results.

use super::{ends, folder_with_database, mdfsck, shell, stderr, stdout};

/// The overhead that `--help` promises: address space beyond the grant, in MB. 64 MB are for the code and for memory
/// that the loader maps. 68 MB per thread are for the stack of the thread and for memory that malloc reserves for it.
const BEYOND_GRANT_MB: u64 = 64;
const PER_THREAD_MB: u64 = 68;

/// The minimum grant in MB. `text` is the message that refuses a smaller grant.
fn least_grant_mb(text: &str) -> u64 {
    let (_, rest) = text.split_once("needs at least ").unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_run_goes_through_with_its_grant_and_the_address_space_of_a_process() {
    let folder = folder_with_database();
    let here = folder.path();
    let made = mdfsck(here, &["lab", "new", "many", "--tables", "2000", "--indexes", "2"]);
    assert!(made.status.success(), "{}", stderr(&made));
    for database in ["db", "many"] {
        for threads in [1, 2, 8] {
            let check = format!("check {database} --maxdop {threads} --memory");
            let refused = shell(here, &format!("exec $mdfsck {check} 1MB"));
            ends(&refused, 8, &["needs"]);
            let grant = least_grant_mb(&stderr(&refused));
            let whole = shell(here, &format!("exec $mdfsck {check} {grant}MB"));
            let limit = (grant + BEYOND_GRANT_MB + threads * PER_THREAD_MB) << 10;
            let limited = shell(here, &format!("ulimit -v {limit}; exec $mdfsck {check} {grant}MB"));
            assert_eq!(
                limited.status.code(),
                whole.status.code(),
                "{database}, {threads} threads: {}",
                stderr(&limited)
            );
            assert_eq!(stdout(&limited), stdout(&whole), "{database}, {threads} threads");
        }
    }
}

#[test]
fn with_less_address_space_there_is_a_whole_result_or_none() {
    let folder = folder_with_database();
    let here = folder.path();
    let whole = shell(here, "exec $mdfsck check db --maxdop 2 --memory 64MB");
    std::fs::write(here.join("old.txt"), "old").unwrap();
    let mut failed = 0;
    for megabytes in (8..64).step_by(4) {
        let run = format!(
            "cp old.txt out.txt; ulimit -v {}; exec $mdfsck check db --maxdop 2 --memory 64MB --output out.txt",
            megabytes << 10
        );
        let limited = shell(here, &run);
        let text = std::fs::read_to_string(here.join("out.txt")).unwrap();
        if limited.status.code() == Some(0) {
            assert_eq!(text, stdout(&whole), "{megabytes} MB");
        } else {
            assert_eq!(text, "old", "{megabytes} MB: {}", stderr(&limited));
            failed += 1;
        }
    }
    assert!(failed > 0, "no limit was too small: the test does not test");
}
