//! Tests with generated logs, with the logs in backups, and with logs of real servers.

mod backups;
mod corpus;
mod damage;
mod flips;
