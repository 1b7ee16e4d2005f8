//! The internal versions of databases, and the releases of SQL Server that write them (docs/format/README.md#versions).

/// The SQL Server release whose final or pre-release versions write internal version `version`. `None` for a version
/// that is newer than all known versions, or older than SQL Server 7.
///
/// ```
/// assert_eq!(format::version::product(852), Some("SQL Server 2016"));
/// assert_eq!(format::version::product(705), Some("SQL Server 2012"));
/// assert_eq!(format::version::product(1234), None);
/// ```
pub fn product(version: u16) -> Option<&'static str> {
    Some(match version {
        515 => "SQL Server 7.0",
        516..=539 => "SQL Server 2000",
        540..=612 => "SQL Server 2005",
        613..=655 => "SQL Server 2008",
        656..=683 => "SQL Server 2008 R2",
        684..=706 => "SQL Server 2012",
        707..=782 => "SQL Server 2014",
        783..=852 => "SQL Server 2016",
        853..=869 => "SQL Server 2017",
        870..=904 => "SQL Server 2019",
        905..=957 => "SQL Server 2022",
        958..=NEWEST => "SQL Server 2025",
        _ => return None,
    })
}

/// The oldest internal version with a known catalog: SQL Server 2005.
pub const OLDEST: u16 = 611;
/// The newest internal version with a known catalog: SQL Server 2025 (pre-release 17.0.925).
pub const NEWEST: u16 = 998;
