//! Tests of the files into which salvaged rows are written.

use std::path::Path;

use export::{Destination, SalvageFiles, SalvageForm, write_salvaged};
use format::{PAGE_BYTES, PageId};
use lab::Version;
use rows::Why;
use rows::salvage::{PageSet, Request};
use source::PageSource;

use super::found::leaf_pages;
use super::losses::{orders_database, table};

fn files(folder: &Path, extension: &str) -> SalvageFiles {
    let to = |suffix: &str| Destination {
        rows: folder.join(format!("dbo.orders.{suffix}.{extension}")),
        unreadable: folder.join(format!("dbo.orders.{suffix}.unreadable.csv")),
        replaces: false,
    };
    SalvageFiles { doubtful: to("doubtful"), rebuilt: to("rebuilt") }
}

#[test]
fn doubtful_and_rebuilt_rows_have_files_of_their_own_with_place_and_reason() {
    let (sound, database) = orders_database(Version::V852);
    let orders = table(&database, "orders");
    let pages = leaf_pages(&sound, &database, &orders);
    let mut flipped = *sound.read_page(pages[3]).unwrap();
    flipped[3000] ^= 1;
    let damaged = sound.with_pages([(pages[3], flipped), (pages[8], [0; PAGE_BYTES])]).unwrap();
    let mut reached = PageSet::of(&damaged);
    pages.iter().for_each(|page| assert!(reached.insert(*page)));
    let written = |form: SalvageForm, extension: &str, lost: &[(PageId, Why)]| {
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            source: &damaged,
            database: &database,
            table: &orders,
            damaged: lost,
            reached: &reached,
            unreached: None,
            rows_read: &[if lost.is_empty() { u64::MAX } else { 0 }],
            ghosts: false,
            memory: 1 << 20,
        };
        let salvaged = write_salvaged(&request, form, &files(folder.path(), extension)).unwrap();
        let read =
            |suffix: &str| std::fs::read_to_string(folder.path().join(format!("dbo.orders.{suffix}.{extension}"))).ok();
        (salvaged, read("doubtful"), read("rebuilt"))
    };
    let lost = [(pages[3], Why::Damaged), (pages[8], Why::OtherPage(PageId::NONE))];
    let (salvaged, doubtful, rebuilt) = written(SalvageForm::Csv, "csv", &lost);
    let (doubtful, rebuilt) = (doubtful.unwrap(), rebuilt.unwrap());
    assert!(doubtful.starts_with("_page,_slot,_why,order_id,customer_id,"), "{doubtful:.90}");
    assert_eq!(doubtful.lines().count() as u64, 1 + salvaged.doubtful);
    let second = doubtful.lines().nth(1).unwrap();
    assert!(second.starts_with(&format!("1:{},0,\"wrong page checksum, record whole\",", pages[3].page)), "{second}");
    assert_eq!(rebuilt.lines().count() as u64, 1 + salvaged.rebuilt.rows);
    let second = rebuilt.lines().nth(1).unwrap();
    assert!(second.starts_with(",,\"page lost, values from ix_orders_customer, ix_orders_ordered_at\","), "{second}");
    let (_, doubtful, _) = written(SalvageForm::Sql, "sql", &lost);
    let doubtful = doubtful.unwrap();
    assert!(doubtful.contains(
        "INTO [dbo].[orders.doubtful]\nFROM (SELECT 1 AS [_one]) AS n LEFT JOIN [dbo].[orders] AS t ON 1 = 0;"
    ));
    assert!(doubtful.contains("INSERT INTO [dbo].[orders.doubtful] ([_page], [_slot], [_why], [order_id], "));
    let (salvaged, doubtful, rebuilt) = written(SalvageForm::Csv, "csv", &[]);
    assert_eq!((salvaged.doubtful, doubtful, rebuilt), (0, None, None), "no rows, no files");
}
