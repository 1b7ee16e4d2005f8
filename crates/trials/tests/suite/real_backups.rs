//! The lab writes the database of a real backup again as a backup. The new backup must equal the real backup byte for
//! byte, except for numbers of unknown meaning.
//!
//! The real backups are not part of the repository; they are expected in `target/corpus`.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use format::{PAGE_BYTES, PageId};
use lab::backup::again::differences;
use source::{BackupPages, PageSource};

/// Full backups with one file and one backup set. They were made by several releases, by hand or by tools, some of them
/// WITH CHECKSUM.
const REAL: [&str; 9] = [
    "salmanshariff07__Sales_Analysis_SQL/Northwind.bak",
    "Apress__pro-sql-server-2012-bi-solutions/_BookFiles/Chapter07Files/FilledDWPubsSalesDB/DWPubsSales_AfterETL.bak",
    "dataplat__appveyor-lab/sql2008-backups/db3/FULL/SQL2008_db3_FULL_20170518_041739.bak",
    "teduinternational__onlineshop/OnlineShop.bak",
    "hdhuy179__QuanLyKhachSan/QuanLyKhachSan.bak",
    "dataplat__appveyor-lab/restoretimeclean2016/RestoreTimeClean.bak",
    "AlonsoMesen14__AnalisisMultiDimensional-Proyecto/Parametros.bak",
    "TranBaThien__OnlineShop/OnlineShop.bak",
    "garynico__C-SQL-Form/SchoolDB.bak",
];

/// Writes the data files with the pages that a backup stores.
fn data_files(backup: &Path, folder: &Path) -> Vec<PathBuf> {
    let pages = BackupPages::open(&[backup.to_owned()], &[]).unwrap();
    let write = |file: &source::DataFile| {
        let mut bytes = vec![0; file.pages as usize * PAGE_BYTES];
        pages.read(PageId::new(file.file_id, 0), &mut bytes).unwrap();
        let path = folder.join(format!("{}.mdf", file.file_id));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    pages.files().iter().map(write).collect()
}

#[test]
#[ignore = "full tier: real files"]
fn a_real_backup_is_written_again() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus");
    for name in REAL {
        let path = corpus.join(name);
        if !path.is_file() {
            println!("skipped: {name} is not in target/corpus");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let files = data_files(&path, folder.path());
        assert_eq!(
            differences(&path, &files, folder.path()),
            BTreeMap::new(),
            "{name}: bytes by block or object and field"
        );
    }
}
