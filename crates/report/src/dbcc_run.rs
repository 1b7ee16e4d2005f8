//! The messages that say that a run of DBCC did not reach its end, or that its snapshot failed.

/// Messages with which DBCC ends a check early, or refuses it in the state in which the database is.
pub(crate) const ENDED: [u16; 20] = [
    2598, 5235, 5269, 5271, 5280, 7926, 7929, 7934, 7983, 7984, 7985, 7986, 7987, 7988, 7995, 8902, 8921, 8930, 8967,
    8999,
];
/// Messages with which DBCC refuses its argument: a table or file that it does not find, or tempdb, which some commands
/// cannot check. Other statements print 2501 too. Nothing was cut off, and a repetition does not help.
const REFUSED: [u16; 4] = [2501, 5230, 5253, 8985];
/// Messages with which the server or the connection ends any command.
const ENDED_BY_SERVER: [u16; 15] = [0, 596, 911, 916, 922, 924, 926, 927, 942, 945, 3414, 5120, 5171, 5172, 5173];
/// Messages that show that a snapshot failed: the hidden snapshot of DBCC, or another one.
pub(crate) const SNAPSHOT_FAILED: [u16; 6] = [1823, 5106, 5128, 5269, 7926, 7928];

/// Whether a message says that a run of DBCC did not look for everything: DBCC, the server or the connection ended it
/// early, or DBCC refused it.
pub fn gave_up(number: u32) -> bool {
    let is_in = |list: &[u16]| u16::try_from(number).is_ok_and(|number| list.contains(&number));
    is_in(&ENDED) || is_in(&REFUSED) || is_in(&ENDED_BY_SERVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_that_ends_a_run_is_listed_once() {
        let lists: [&[u16]; 3] = [&ENDED, &REFUSED, &ENDED_BY_SERVER];
        assert!(lists.iter().all(|list| list.is_sorted_by(|one, next| one < next)));
        let all: std::collections::BTreeSet<u16> = lists.into_iter().flatten().copied().collect();
        assert_eq!(all.len(), lists.into_iter().flatten().count());
        assert!(all.iter().all(|&number| gave_up(number.into())) && !gave_up(8939) && !gave_up(2501 + (1 << 16)));
        let of_dbcc = |number: &u16| crate::parity::is_message_of_checkdb((*number).into());
        assert!(ENDED.iter().chain(&REFUSED).all(of_dbcc) && !ENDED_BY_SERVER.iter().any(of_dbcc));
    }
}
