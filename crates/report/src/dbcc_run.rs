//! The messages that say that a run of DBCC did not reach its end, or that its snapshot failed.

/// Messages with which DBCC ends a check early, or refuses it.
pub(crate) const ENDED: [u16; 24] = [
    2501, 2598, 5230, 5235, 5253, 5269, 5271, 5280, 7926, 7929, 7934, 7983, 7984, 7985, 7986, 7987, 7988, 7995, 8902,
    8921, 8930, 8967, 8985, 8999,
];
/// Messages with which the server or the connection ends any command.
pub(crate) const ENDED_BY_SERVER: [u16; 15] =
    [0, 596, 911, 916, 922, 924, 926, 927, 942, 945, 3414, 5120, 5171, 5172, 5173];
/// Messages that show that a snapshot failed: the hidden snapshot of DBCC, or another one.
pub(crate) const SNAPSHOT_FAILED: [u16; 6] = [1823, 5106, 5128, 5269, 7926, 7928];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_that_ends_a_run_is_listed_once() {
        assert!(ENDED.is_sorted_by(|one, next| one < next) && ENDED_BY_SERVER.is_sorted_by(|one, next| one < next));
        assert!(ENDED.iter().all(|number| !ENDED_BY_SERVER.contains(number)));
        let of_dbcc = |number: &u16| crate::parity::is_message_of_checkdb((*number).into());
        assert!(ENDED.iter().all(of_dbcc) && !ENDED_BY_SERVER.iter().any(of_dbcc));
    }
}
