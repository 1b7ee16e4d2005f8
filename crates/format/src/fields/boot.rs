//! Boot record and file header.

use super::prelude::*;

/// The names of the bits of dbi_status.
const STATUS: Names = &[
    (0x1, "autoclose"),
    (0x4, "bulk-logged"),
    (0x8, "simple recovery"),
    (0x10, "torn page detection"),
    (0x20, "loading"),
    (0x40, "pre-recovery"),
    (0x80, "recovering"),
    (0x200, "offline"),
    (0x400, "read only"),
    (0x1000, "single user"),
    (0x8000, "emergency"),
    (0x1_0000, "checksum"),
    (0x40_0000, "autoshrink"),
    (0x4000_0000, "cleanly shut down"),
];

/// The names of the bits of dbi_dbccFlags.
const DBCC_FLAGS: Names = &[(0x2, "data purity")];

fields! { BOOT: Boot, "docs/format/boot-and-file-headers.md#boot-page";
    "status", "record status", At(0), B(2), Hex, [], "0";
    "length", "record length", At(2), B(2), Unsigned, [], "grew with each release, from 732 (2005) to 1832 (2025)";
    "dbi_version", "version", At(0x04), B(2), DatabaseVersion, [], "internal version of the database";
    "dbi_createVersion", "create version", At(0x06), B(2), DatabaseVersion, [],
        "internal version of the release that created the database";
    "dbi_logBackupLSN", "last log backup LSN", At(0x08), B(10), Lsn, [], "LSN of the last log backup (inferred)";
    "dbi_LastLogBackupTime", "last log backup", At(0x14), B(8), DateTime, [], "time of the last log backup (inferred)";
    "dbi_nextseqnum", "next sequence number", At(0x1C), B(8), DateTime, [],
        "DBCC DBINFO prints it as a time (inferred)";
    "dbi_status", "status", At(0x24), B(4), Flags(STATUS), [],
        "recovery model, page verify option and state; the model is full if neither 0x4 nor 0x8 is set";
    "dbi_nextid", "next id", At(0x28), B(4), Unsigned, [], "next object id";
    "dbi_crdate", "created", At(0x2C), B(8), DateTime, [], "when the database was created or attached";
    "dbi_dbname", "database name", At(0x34), B(256), Text, [], "UTF-16, padded with bytes 0x20";
    "dbi_dbname length", "bytes of the name", At(0x134), B(4), Unsigned, [],
        "length of the name in bytes; the bytes after the name may belong to an older name; the name of this field \
         is made up here";
    "dbi_dbid", "database id", At(0x138), B(2), Unsigned, [], "id of the database on the server that wrote the file";
    "dbi_cmptlevel", "compatibility level", At(0x13A), B(2), Unsigned, [], "compatibility level: 80 to 170";
    "dbi_maxDbTimestamp", "highest rowversion", At(0x13C), B(8), Unsigned, [],
        "last rowversion value that was assigned";
    "dbi_differentialBaseLSN", "differential base LSN", At(0x150), B(10), Lsn, [],
        "LSN of the last full backup (inferred)";
    "dbi_checkptLSN", "checkpoint LSN", At(0x15C), B(10), Lsn, [],
        "LSN of the last checkpoint; after a clean shutdown it is above the LSN of every page";
    "dbi_dbccFlags", "DBCC flags", At(0x166), B(2), Flags(DBCC_FLAGS), [],
        "whether CHECKDB checks column values by default";
    "dbi_COWLastLSN", "copy-on-write LSN", At(0x168), B(10), Lsn, [], "zero in every file seen";
    "dbi_DirtyPageLSN", "oldest dirty page LSN", At(0x174), B(10), Lsn, [],
        "from 706 on, the LSN at which redo starts: the checkpoint LSN or an older LSN";
    "dbi_collation", "collation", At(0x188), B(4), Hex, [], "default collation of the database";
    "dbi_familyGUID", "family guid", At(0x198), B(16), Guid, [], "the same for all copies of the database";
    "dbi_recoveryForkLSN", "recovery fork LSN", Each { first: 0x1BC, stride: 28, count: Times(2) }, B(10), Lsn, [],
        "LSN at which a recovery fork starts";
    "dbi_recoveryForkGUID", "recovery fork guid", Each { first: 0x1C8, stride: 28, count: Times(2) }, B(16), Guid, [],
        "identity of the recovery fork";
    "dbi_differentialBaseGuid", "differential base guid", At(0x1F4), B(16), Guid, [], "GUID of the last full backup";
    "dbi_firstSysIndexes", "first page of sysallocunits", At(0x204), B(6), PagePointer, [7984, 7985, 7986],
        "first leaf page of sysallocunits, where the catalog starts";
    "dbi_oldVersion", "older version", At(0x20A), B(2), DatabaseVersion, [],
        "0, 611, 655 or 661, regardless of dbi_version";
    "dbi_versionChangeLSN", "version change LSN", At(0x218), B(10), Lsn, [], "LSN that an upgrade stored here";
    "dbi_updSysCatalog", "catalog updated", At(0x278), B(8), DateTime, [3859],
        "when system tables were last updated by hand (inferred); zero in every file seen";
    "dbi_logBackupChainOrigin", "log backup chain origin", At(0x280), B(10), Lsn, [],
        "LSN at which the chain of log backups starts";
    "dbi_dbccLastKnownGood", "last good check", At(0x28C), B(8), DateTime, [],
        "end of the last DBCC CHECKDB without errors (inferred)";
    "dbi_modDate", "modified", At(0x2A4), B(8), DateTime, [], "when the boot page was last changed";
    "dbi_engineBuild", "engine build", At(0x2AC), B(4), EngineBuild, [],
        "build of the server that last wrote the boot page";
    "dbi_svcBrokerGUID", "service broker guid", At(0x2B4), B(16), Guid, [], "identity of the database's broker";
    "dbi_nextAllocUnit", "next allocation unit", At(0x2E0), B(8), Hex, [],
        "the next id of an allocation unit or rowset is this value << 16; in 2005, the record ends before this field";
    "dbi_targetRecoveryTime", "target recovery time", At(0x5C0), B(4), Unsigned, [],
        "in seconds, from 706 on; 0 = automatic checkpoints; DBINFO does not print this field, so its name is made \
         up here";
}

fields! { FILE_HEADER: FileHeader, "docs/format/boot-and-file-headers.md#file-header";
    "BindingID", "binding guid", Column(0), B(16), Guid, [], "the same in all files of the database";
    "FileId", "file id", Column(2), B(2), Unsigned, [], "1 for the primary data file";
    "FileGroupId", "filegroup id", Column(3), B(2), Unsigned, [], "0 for log files";
    "Size", "size in pages", Column(4), B(4), Unsigned, [2579, 8968], "length of the file in bytes, divided by 8192";
    "MaxSize", "largest size in pages", Column(5), B(4), Unsigned, [], "in pages; 4294967295 = no limit";
    "Growth", "growth", Column(6), B(4), Unsigned, [], "in pages, or in percent if the status says so";
    "Perf", "perf", Column(7), B(4), Unsigned, [], "unused";
    "BackupLSN", "backup LSN", Column(8), B(10), Lsn, [], "LSN of the differential base of the file";
    "FirstUpdateLSN", "first update LSN", Column(9), B(10), Lsn, [],
        "LSN of the first change after the file was made writable";
    "MinSize", "smallest size in pages", Column(12), B(4), Unsigned, [],
        "in pages; the file is not shrunk below this size";
    "Status", "status", Column(13), B(4), Hex, [], "flags of the file";
    "UserShrinkSize", "user shrink size", Column(14), B(4), Unsigned, [], "4294967295 if no user ever shrank the file";
    "SectorSize", "sector size", Column(15), B(4), Unsigned, [], "sector size of the disk: 512 or 4096 bytes";
    "DifferentialBaseGuid", "differential base guid", Column(21), B(16), Guid, [], "GUID of the last full backup";
    "FileGuid", "file guid", Column(23), B(16), Guid, [], "identity of the file";
    "LogicalName", "logical name", Column(27), Varies, Text, [], "name of the file within the database";
}
