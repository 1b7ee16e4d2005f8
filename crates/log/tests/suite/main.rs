//! Logs of the lab, of backups and of real servers.

mod backups;
mod corpus;
mod damage;
mod flips;
