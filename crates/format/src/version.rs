//! Internal database versions and the products they belong to (format.md, first paragraph).

/// SQL Server release that writes internal version `version`, or `None` for a version nobody has described.
///
/// ```
/// assert_eq!(format::version::product(852), Some("SQL Server 2016"));
/// assert_eq!(format::version::product(1234), None);
/// ```
pub fn product(version: u16) -> Option<&'static str> {
    Some(match version {
        515 => "SQL Server 7.0",
        539 => "SQL Server 2000",
        611 | 612 => "SQL Server 2005",
        655 => "SQL Server 2008",
        660 | 661 => "SQL Server 2008 R2",
        706 => "SQL Server 2012",
        782 => "SQL Server 2014",
        852 => "SQL Server 2016",
        868 | 869 => "SQL Server 2017",
        904 => "SQL Server 2019",
        957 => "SQL Server 2022",
        998 => "SQL Server 2025",
        _ => return None,
    })
}

/// The oldest internal version whose catalogue is known: SQL Server 2005.
pub const OLDEST: u16 = 611;
/// The newest internal version whose catalogue is known: SQL Server 2025 (pre-release 17.0.925).
pub const NEWEST: u16 = 998;
