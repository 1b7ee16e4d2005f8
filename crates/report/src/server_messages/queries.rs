//! Messages that queries and connections get when something below them is wrong.

use super::{ServerMessage, row};

/// The messages, by number.
pub(super) static MESSAGES: &[ServerMessage] = &[
    row(
        211,
        "the catalog of a database contradicts itself",
        "The engine could not build its description of an object, because rows of the system tables are missing or contradict each other.",
        "The database id and object id in the message. 'mdfsck check --catalog' compares the system tables with each other.",
        "Run 'mdfsck check' on the files or a backup. No repair exists for the catalog: restore, or copy objects and data into a new database.",
    ),
    row(
        596,
        "the session was ended",
        "Somebody, or the server after a severe error, ended the session (KILL state). The message does not say why.",
        "Messages of level 20 and higher in the error log of the same second, above all 3624, 823, 824 and dumps.",
        "Act on these messages. If a check was running, run it again; 'mdfsck check' on a backup or a copy of the files needs no session.",
    ),
    row(
        916,
        "no permission in the database",
        "The login has no user in the database. Nothing is damaged. The message also comes if a tool shows columns of a database that is offline or that the login may not see.",
        "The login and the database in the message, and the state of the database in sys.databases.",
        "Give the login a user in the database. 'mdfsck check' only needs to read the files or a backup.",
    ),
    row(
        976,
        "a secondary replica does not accept queries",
        "The database is in an availability group, and data movement is suspended, or the replica is not enabled for reading.",
        "The state of the replica in sys.dm_hadr_database_replica_states, and 'readable secondary'.",
        "Query the primary replica, resume data movement, or enable reading. 'mdfsck check' on a backup checks the database without a query.",
    ),
    row(
        3624,
        "an assertion of the server failed",
        "The server met a state that its code does not expect, ended the command and wrote a dump. The cause is damaged data, damaged memory, or a fault of SQL Server.",
        "The location and the expression in the error log, the query, 823, 824 and 832, and the build of the server.",
        "Run 'mdfsck check' on the files or a backup to find out whether data is damaged. Install the newest update, and test the memory.",
    ),
    row(
        8645,
        "a query waited too long for memory",
        "The query, or DBCC CHECKDB, did not get its memory grant in time. No data is damaged.",
        "Queries with large grants in sys.dm_exec_query_memory_grants, and 'max server memory'.",
        "Run the command again when the server has less to do. 'mdfsck check' uses no memory of the server.",
    ),
    row(
        8646,
        "an index entry was not found",
        "An update or delete looked for the entry of a row in an index, and the index does not have it: the index and the table do not match, or the plan of the query is wrong.",
        "The table and the index id in the message. Messages 8951 and 8952 of a check name the rows.",
        "Run 'mdfsck check --table' for the table. If only the nonclustered index is damaged, disable it and rebuild it; otherwise restore.",
    ),
    row(
        8649,
        "a query was refused because of its estimated cost",
        "The query governor limits the estimated cost of queries, and this query exceeds it. Nothing is damaged. The limit also refuses the queries of DBCC.",
        "'query governor cost limit' in sys.configurations, and SET QUERY_GOVERNOR_COST_LIMIT of the session.",
        "Raise the limit for the session, and run the command again. 'mdfsck check' runs outside of the server.",
    ),
];
