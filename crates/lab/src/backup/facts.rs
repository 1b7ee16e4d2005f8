//! All metadata of a backup, without the pages and the log.

use super::origin::Origin;
use super::{BackupOptions, config};
use crate::disk::LabError;
use crate::fixed::guid;
use crate::page::Lsn;
use crate::random::mix;

/// A file of the database.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileFacts {
    pub(crate) id: u16,
    pub(crate) filegroup: u16,
    pub(crate) bytes: u64,
    /// Size of the file in bytes when it was created.
    pub(crate) first_bytes: u64,
    pub(crate) most_bytes: u64,
    pub(crate) growth: u64,
    pub(crate) grows_by_percent: bool,
    /// Sector size, in bytes, of the disk that has the file.
    pub(crate) sector_bytes: u32,
    pub(crate) guid: [u8; 16],
    pub(crate) logical_name: String,
    pub(crate) path: String,
}

/// The values that are written into the labels and the configuration objects of a backup set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    // Fields of the media.
    pub(crate) media_set: [u8; 16],
    pub(crate) stripes: u16,
    /// The IDs of the media families, by stripe.
    pub(crate) families: Vec<u32>,
    pub(crate) media_date: [u8; 5],
    // Fields of the backup set.
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) machine: String,
    /// Name of the volume that has the data files.
    pub(crate) volume: String,
    pub(crate) server: String,
    /// The GUID of the set.
    pub(crate) set: [u8; 16],
    pub(crate) letter: u8,
    pub(crate) flags: u32,
    pub(crate) is_copy_only: bool,
    pub(crate) started: [u8; 5],
    pub(crate) finished: [u8; 5],
    /// Finish time in units of 100 ns since 1601.
    pub(crate) finished_at: u64,
    pub(crate) time_zone: u8,
    // Fields of the log.
    pub(crate) first_lsn: Lsn,
    pub(crate) last_lsn: Lsn,
    pub(crate) checkpoint_lsn: Lsn,
    /// The checkpoint LSN of the previous full backup.
    pub(crate) full_backup_lsn: Lsn,
    pub(crate) redo_lsn: Lsn,
    // Fields about the full backup on which a differential backup is based. In a full backup, these fields describe the
    // full backup before it.
    pub(crate) base_lsn: Lsn,
    pub(crate) base_set: [u8; 16],
    pub(crate) base_at: u64,
    // Fields of the database.
    pub(crate) database: String,
    pub(crate) version: u16,
    pub(crate) compatibility: u8,
    pub(crate) build: [u8; 4],
    pub(crate) collation: u32,
    pub(crate) sort_order: u8,
    pub(crate) created: [u8; 5],
    pub(crate) binding: [u8; 16],
    pub(crate) family: [u8; 16],
    pub(crate) fork: [u8; 16],
    /// The previous recovery fork, and the LSN at which the current fork began.
    pub(crate) earlier_fork: ([u8; 16], Lsn),
    pub(crate) filegroups: Vec<(u16, String)>,
    pub(crate) files: Vec<FileFacts>,
    pub(crate) log_file: FileFacts,
    /// The log files after the first one.
    pub(crate) more_logs: Vec<FileFacts>,
}

/// Time of step 0: 2024-02-01, in units of 100 ns since 1601-01-01.
const EPOCH: u64 = 133_512_192_000_000_000;

impl Facts {
    /// Derives the metadata of a backup of `origin` that is taken `step` minutes after the last shutdown of the
    /// database. Each step has a range of LSNs of its own.
    pub(crate) fn new(origin: &Origin, step: u8, options: &BackupOptions) -> Result<Self, LabError> {
        let boot = origin.boot()?;
        let seed = mix(u64::from_le_bytes(boot.family[..8].try_into().unwrap_or_default()));
        let checkpoint = |step: u8| Lsn(boot.checkpoint.0.saturating_add(step.into()), 16, 1);
        let minute = |step: u8, second: u8| config::date((2024, 2, 1), (step / 60, step % 60, second));
        let mut this = Self {
            media_set: guid(seed, 0x1000 + u64::from(step)),
            stripes: options.stripes.max(1),
            media_date: minute(step, 0),
            name: format!(
                "{}-{}",
                boot.name,
                if options.base.is_some() { "Differential Database Backup" } else { "Full Database Backup" }
            ),
            user: "LAB\\backup".to_owned(),
            machine: "LAB".to_owned(),
            server: "LAB".to_owned(),
            set: guid(seed, 0x2000 + u64::from(step)),
            letter: match (options.base, options.only) {
                (Some(_), _) => b'I',
                (None, Some(_)) => b'F',
                (None, None) => b'D',
            },
            flags: 0x200
                | u32::from(options.checksum) << 4
                | u32::from(options.copy_only) << 10
                | u32::from(options.base.is_some()) << 11,
            is_copy_only: options.copy_only,
            started: minute(step, 0),
            finished: minute(step, 1),
            finished_at: EPOCH + u64::from(step) * 600_000_000,
            first_lsn: checkpoint(step),
            checkpoint_lsn: checkpoint(step),
            redo_lsn: checkpoint(step),
            database: boot.name,
            version: boot.version,
            compatibility: boot.compatibility,
            build: boot.build,
            collation: boot.collation,
            sort_order: boot.sort_order,
            created: config::date((2024, 1, 2), (10, 0, 0)),
            binding: origin.binding()?,
            family: boot.family,
            fork: boot.fork,
            earlier_fork: boot.earlier_fork,
            ..Self::default()
        };
        this.families =
            (0..this.stripes).map(|stripe| mix(seed ^ u64::from(stripe) << 8 ^ u64::from(step)) as u32).collect();
        if let Some(base) = options.base {
            this.full_backup_lsn = checkpoint(base.step);
            this.base_lsn = checkpoint(base.step);
            this.base_set = guid(seed, 0x2000 + u64::from(base.step));
            this.base_at = EPOCH + u64::from(base.step) * 600_000_000;
        }
        this.files = origin.file_facts()?;
        for file in &mut this.files {
            file.path = format!("C:\\LAB\\{}", file.path);
        }
        let mut groups: Vec<u16> = this.files.iter().map(|file| file.filegroup).collect();
        groups.sort_unstable();
        groups.dedup();
        let name = |id: u16| if id == 1 { "PRIMARY".to_owned() } else { format!("FG{id}") };
        this.filegroups = groups.into_iter().map(|id| (id, name(id))).collect();
        this.log_file = FileFacts {
            id: 2,
            filegroup: 0,
            bytes: 8 << 20,
            first_bytes: 8 << 20,
            most_bytes: 2 << 40,
            growth: 64 << 20,
            sector_bytes: 512,
            guid: guid(seed, 0x3000),
            logical_name: format!("{}_log", this.database),
            path: format!("C:\\LAB\\{}_log.ldf", this.database),
            ..FileFacts::default()
        };
        Ok(this)
    }
}
