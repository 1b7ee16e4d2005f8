use catalog::{Database, Rowset, UnitKind};
use format::{PAGE_BYTES, Page, PageBytes, PageId, PageType};
use lab::{Version, orders};
use rows::loss::{ColumnSource, CountBasis, WhichRows, losses};
use rows::{Column, Place, Table};
use source::{MemoryFiles, PageSource};

use super::found::opened;

/// Writes a database with the `orders` schema, and opens it in memory.
pub(crate) fn orders_database(version: Version) -> (MemoryFiles, Database) {
    opened(&orders::orders(version, 7, 10 << 20))
}

/// The table with this name, and all its columns, because losses may name columns.
pub(crate) fn table(database: &Database, name: &str) -> Table {
    let object = database.objects.values().find(|object| object.name == name && object.type_code == "U").unwrap();
    let rowset = database.rowsets.iter().find(|rowset| rowset.object_id == object.id && rowset.index_id < 2).unwrap();
    let columns = database.columns[&object.id].iter().map(|column| Column {
        id: column.id,
        name: column.name.clone(),
        info: rowset.layout.column(column.id).map(|own| own.info).unwrap_or_default(),
        user_type: column.user_type,
        collation: format::collation::CollationId(0),
        is_nullable: true,
        place: if rowset.layout.column(column.id).is_some() { Place::Stored } else { Place::Computed },
    });
    let of_table = |rowset: &Rowset| rowset.object_id == object.id && rowset.index_id < 2;
    Table {
        object_id: object.id,
        schema: "dbo".to_owned(),
        name: name.to_owned(),
        columns: columns.collect(),
        partitions: (0..database.rowsets.len()).filter(|at| of_table(&database.rowsets[*at])).collect(),
    }
}

/// The leaf pages of a table in file order, each with its first and last order ID.
fn leaves(files: &MemoryFiles, database: &Database, table: &Table) -> Vec<(PageId, i64, i64)> {
    let rowset = &database.rowsets[table.partitions[0]];
    let unit =
        rowset.units.iter().map(|unit| &database.units[*unit]).find(|unit| unit.kind == UnitKind::InRow).unwrap();
    let mut leaves = Vec::new();
    for number in 0..files.files()[0].pages {
        let id = PageId::new(1, number);
        let bytes = files.read_page(id).unwrap();
        let page = Page::new(&bytes);
        let header = page.header();
        if header.kind() == Some(PageType::Data) && header.alloc_unit() == unit.id && header.page_id() == id {
            let key = |slot: u16| i64::from_le_bytes(page.slot_bytes(slot).unwrap()[4..12].try_into().unwrap());
            leaves.push((id, key(0), key(header.slot_count.get() - 1)));
        }
    }
    leaves.sort_by_key(|(_, first, _)| *first);
    leaves
}

fn flipped(files: &MemoryFiles, page: PageId) -> (PageId, PageBytes) {
    let mut bytes = *files.read_page(page).unwrap();
    bytes[4000] ^= 0x40;
    (page, bytes)
}

#[test]
fn lost_leaves_cost_the_keys_between_their_neighbours() {
    for version in [Version::V611, Version::V957] {
        let (files, database) = orders_database(version);
        let table = table(&database, "orders");
        let leaves = leaves(&files, &database, &table);
        let (lost, after) = (&leaves[10..12], &leaves[12]);
        let damaged = files.with_pages(lost.iter().map(|(page, ..)| flipped(&files, *page))).unwrap();
        let found = losses(&damaged, &database, &table, &lost.iter().map(|leaf| leaf.0).collect::<Vec<_>>(), None);
        let [loss] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(loss.pages, [lost[0].0, lost[1].0]);
        assert_eq!(loss.rows.most, Some((lost[1].2 - lost[0].1 + 1).unsigned_abs()));
        let WhichRows::Keys { columns, from, to } = &loss.which else { panic!("{loss:?}") };
        assert_eq!(columns, &["order_id"]);
        let (from, to) = (from.as_ref().unwrap(), to.as_ref().unwrap());
        assert_eq!((from.text(), from.inclusive), (lost[0].1.to_string(), true));
        assert_eq!((to.text(), to.inclusive), (after.1.to_string(), false));
        let recoverable: Vec<&str> = loss.recoverable.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(recoverable, ["order_id", "customer_id", "ordered_at", "status", "total"]);
        let ColumnSource::Index { name, .. } = &loss.recoverable[4].source;
        assert_eq!(name, "ix_orders_customer");
    }
}

#[test]
fn the_rows_beside_say_which_keys_are_lost_when_the_tree_is_cut_above() {
    let (files, database) = orders_database(Version::V852);
    let table = table(&database, "orders");
    let leaves = leaves(&files, &database, &table);
    let rowset = &database.rowsets[table.partitions[0]];
    let root = database.units[rowset.units[0]].root;
    let lost = &leaves[20];
    let damaged = files.with_pages([flipped(&files, lost.0), flipped(&files, root)]).unwrap();
    let found = losses(&damaged, &database, &table, &[lost.0], Some(&[rowset.rows.unsigned_abs() - 17]));
    let [loss] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((loss.rows.least, loss.rows.basis), (17, CountBasis::StoredCount));
    let WhichRows::Keys { from: Some(from), to: Some(to), .. } = &loss.which else { panic!("{loss:?}") };
    assert_eq!((from.text(), from.inclusive), (leaves[19].2.to_string(), false));
    assert_eq!(to.text(), leaves[21].1.to_string());
}

#[test]
fn lost_pages_of_a_heap_cost_their_slots() {
    let (files, database) = orders_database(Version::V852);
    let table = table(&database, "products");
    let unit = &database.units[database.rowsets[table.partitions[0]].units[0]];
    let page = (0..files.files()[0].pages).map(|page| PageId::new(1, page)).find(|page| {
        let bytes = files.read_page(*page).unwrap();
        let header = Page::new(&bytes).header();
        header.kind() == Some(PageType::Data) && header.alloc_unit() == unit.id
    });
    let page = page.unwrap();
    let zero = files.with_pages([(page, [0; PAGE_BYTES])]).unwrap();
    let found = losses(&zero, &database, &table, &[page], None);
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].which, found[0].rows.basis), (&WhichRows::Slots, CountBasis::PageSize));
}
