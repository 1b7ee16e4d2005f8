//! The versions of SQL Server in whose format the lab can write.

/// A version of SQL Server, named after the internal version of its data files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// SQL Server 2005.
    V611,
    /// SQL Server 2008 R2.
    V661,
    /// SQL Server 2012.
    V706,
    /// SQL Server 2016.
    V852,
    /// SQL Server 2019.
    V904,
    /// SQL Server 2022.
    V957,
}

/// The properties in which the versions differ. Differences in the catalog are in the module `facts`.
#[derive(Clone, Copy, Debug)]
pub struct VersionFacts {
    /// dbi_version.
    pub number: u16,
    /// The internal version of SQL Server in which the model database was created. Every new database contains this
    /// number in its boot page, because SQL Server creates the database as a copy of the model database.
    pub model_version: u16,
    /// Length of the boot page's record in bytes.
    pub boot_length: u16,
    /// Number of columns in the file header record, and the number of variable-length columns that are present.
    pub header_columns: (u16, usize),
    /// Compatibility level.
    pub compatibility: u16,
    /// Engine build: major, minor, build.
    pub build: (u8, u8, u16),
}

impl Version {
    /// All versions, from the oldest to the newest.
    pub const ALL: [Self; 6] = [Self::V611, Self::V661, Self::V706, Self::V852, Self::V904, Self::V957];

    /// The version with this internal number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.facts().number == number)
    }

    /// The facts of the version.
    pub fn facts(self) -> VersionFacts {
        let (number, boot_length, header_columns, compatibility, build) = match self {
            Self::V611 => (611, 732, (45, 44), 90, (9, 0, 1399)),
            Self::V661 => (661, 1444, (47, 46), 100, (10, 50, 1600)),
            Self::V706 => (706, 1504, (49, 46), 110, (11, 0, 2100)),
            Self::V852 => (852, 1620, (49, 46), 130, (13, 0, 1601)),
            Self::V904 => (904, 1768, (56, 55), 150, (15, 0, 2000)),
            Self::V957 => (957, 1786, (60, 59), 160, (16, 0, 1000)),
        };
        let model_version = if number == 661 { 655 } else { 611 };
        VersionFacts { number, model_version, boot_length, header_columns, compatibility, build }
    }

    /// The position of the version in `ALL`.
    pub fn index(self) -> usize {
        self as usize
    }
}
