//! Restores of parts of a database: files, filegroups, partitions.

use advise::Action;
use lab::backup::{BackupOptions, Set, backup};
use lab::damage::{Kind, damage};
use lab::description::Filegroup;
use lab::{PageVerify, Version, orders, specimens};

use super::*;

/// The number of a PFS page. SQL Server cannot restore this page by a page restore.
const PFS: u32 = 1;

#[test]
fn pages_that_cannot_be_restored_alone_take_their_file_or_filegroup_not_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let mut description = orders::orders(Version::V904, 5, 9 << 20);
    description.filegroups[0].files = 2;
    description.filegroups.push(Filegroup { name: "O'Archive".to_owned(), files: 2 });
    description.tables.last_mut().unwrap().filegroup = 1;
    let files = write(&description, folder.path());
    assert_eq!(files.len(), 4);
    let set = Set { files: &files, step: 1, options: BackupOptions::default() };
    let backups = backups(&backup(&[set], folder.path(), "full").unwrap().files);
    let sound = open(&files);
    let ids: Vec<u16> = sound.files().iter().map(|file| file.file_id).collect();
    let archive: Vec<u16> = sound.files().iter().filter(|file| file.filegroup > 1).map(|file| file.file_id).collect();
    assert_eq!(archive.len(), 2);
    let hurt = |pages: &[(u16, u32)]| {
        let change = |&(file, page): &(u16, u32)| {
            let page = PageId::new(file, page);
            let mut bytes = *sound.read_page(page).unwrap();
            bytes[4000] ^= 0x55;
            (page, bytes)
        };
        advice(&sound.with_pages(pages.iter().map(change)).unwrap(), Some(&backups)).1
    };
    let restore = |plan: &Plan| plan.steps.iter().find(|step| !step.from.is_empty()).unwrap().clone();
    let one = restore(&hurt(&[(archive[1], PFS)]));
    assert_eq!(one.action, Action::RestoreFile, "{one:#?}");
    let name = &sound.file(archive[1]).unwrap().logical_name;
    assert!(one.sql.join("\n").contains(&format!("RESTORE DATABASE [orders] FILE = N'{name}'\n")), "{one:#?}");
    assert!(one.reason.contains("is a PFS page"), "{one:#?}");
    let both = restore(&hurt(&[(archive[0], PFS), (archive[1], PFS)]));
    assert_eq!(both.action, Action::RestoreFile, "{both:#?}");
    assert!(both.sql.join("\n").contains("RESTORE DATABASE [orders] FILEGROUP = N'O''Archive'\n"), "{both:#?}");
    // A file restore is possible even if the file header is damaged. The primary file is an exception, because the
    // database cannot start without it.
    assert_eq!(restore(&hurt(&[(archive[0], 0)])).action, Action::RestoreFile);
    let primary = restore(&hurt(&[(1, PFS)]));
    assert!(primary.action == Action::RestoreFile && primary.risk.contains("primary filegroup"), "{primary:#?}");
    assert_eq!(restore(&hurt(&[(1, 9)])).action, Action::RestoreDatabase);
    let all: Vec<(u16, u32)> = ids.iter().map(|id| (*id, PFS)).collect();
    assert_eq!(restore(&hurt(&all)).action, Action::RestoreDatabase);
    // Damage to data pages of two files must lead to a single page restore of the pages of both files.
    let database = catalog::load(&sound);
    let page_of = |file: u16| {
        let pages = (8..sound.file(file).unwrap().pages).map(|page| PageId::new(file, page));
        let is_of_user = |page: &PageId| {
            owner(&sound, &database, *page)
                .is_some_and(|(object, index)| index <= 1 && !database.is_system_table(object))
        };
        pages.into_iter().find(is_of_user).map(|page| (file, page.page))
    };
    let two: Vec<(u16, u32)> = ids.iter().filter_map(|id| page_of(*id)).take(2).collect();
    let pages = restore(&hurt(&two));
    assert_eq!(pages.action, Action::RestorePages, "{pages:#?}");
    assert_eq!(pages.pages, two.iter().map(|(file, page)| PageId::new(*file, *page)).collect::<Vec<_>>());
}

#[test]
#[ignore = "full tier: takes seconds"]
fn only_the_damaged_partition_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for seed in 0..6 {
        let files = write(
            &specimens::specimen(Version::V904, PageVerify::Checksum, seed),
            &folder.path().join(seed.to_string()),
        );
        let bytes = fs::read(&files[0]).unwrap();
        for damage_seed in 0..12 {
            fs::write(&files[0], &bytes).unwrap();
            let Ok(done) = damage(&files, Kind::BrokenLink, damage_seed) else { continue };
            let hurt = open(&files);
            let database = catalog::load(&hurt);
            let page = PageId::new(done.pages[0].file, done.pages[0].page);
            let unit = Page::new(&hurt.read_page(page).unwrap()).header().alloc_unit();
            let rowset = database.rowset_of(&database.units[database.unit_index(unit).unwrap()]).unwrap().clone();
            if rowset.index_id != 1 || database.table_rowsets(rowset.object_id).count() < 2 {
                continue;
            }
            let (_, plan) = advice(&hurt, None);
            let step = plan.steps.iter().find(|step| step.action == Action::RebuildTable).unwrap();
            let sql = step.sql.join("\n");
            let wanted = format!(" REBUILD PARTITION = {};", rowset.partition);
            // The damage may also affect a second partition, because a wrong link may point into it. Even then the
            // advice must not rebuild the whole table.
            let rebuilt = sql.matches("] REBUILD PARTITION = ").count();
            let whole = sql.contains("] REBUILD;");
            assert!(sql.contains(&wanted) && !whole && (1..3).contains(&rebuilt), "{sql}");
            if rebuilt == 1 {
                assert!(step.title.contains(&format!("partition {} of", rowset.partition)), "{step:#?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no partitioned table was hit");
}
