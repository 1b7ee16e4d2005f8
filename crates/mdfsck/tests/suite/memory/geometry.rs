//! A geometry value of 60 MB. The lab writes a value of 4 MB, and this module adds a new root record with fifteen links
//! to the old root record.

use std::path::{Path, PathBuf};

use format::page::PAGE_BYTES;
use format::{PageBytes, PageType};
use lab::SqlType;
use lab::description::{Column, Index, Table, Values};

use super::pages::Pages;

const BLOCK: usize = 4_000_000;
const BLOCKS: usize = 15;
/// The number of points for which the value has space. The value begins with a header that contains the number of
/// points, and ends with one figure and one shape.
pub(crate) const POINTS: usize = (BLOCK * BLOCKS - 32) / 16;

/// Writes a database with one table. The table has one row with the value of 60 MB. Returns the first page of the
/// value.
pub(crate) fn write(folder: &Path) -> u32 {
    let mut description = lab::orders::orders(lab::Version::V852, 7, 0);
    description.tables = vec![Table {
        name: "shapes".to_owned(),
        columns: vec![
            Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 }),
            Column::new("shape", SqlType::VARBINARY_MAX, Values::Bytes { least: BLOCK as u32, most: BLOCK as u32 }),
        ],
        clustered: Some(Index::on("pk", &[0]).primary_key()),
        rows: 1,
        ..Table::default()
    }];
    let written = lab::write(&description, folder).unwrap();
    let file = Pages::of(folder);
    make_geometry(&file, &written.files);
    let tree = file.user_pages(PageType::TextTree).remove(0);
    let node = Pages::record(&tree, 0);
    // A link contains the offset at which its part of the value ends, and an address that consists of page, file and
    // slot.
    let links = tree[node + 20..].chunks_exact(16).take_while(|link| link[8..12] != [0; 4]);
    let data: Vec<u32> = links.map(|link| u32::from_le_bytes(link[8..12].try_into().unwrap())).collect();
    let (first, last) = (data[0], data[data.len() - 1]);
    // Writes one figure and one shape at the end of the value.
    let mut page = file.read(last);
    let end = 96 + usize::from(u16::from_le_bytes([page[98], page[99]]));
    page[end - 22..end]
        .copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 3]);
    // Adds a new root record to the last page. Each link in the new root record points to the old root record.
    let mut record = [&page[96..108], &[2, 0, 0xF5, 1, BLOCKS as u8, 0, 1, 0]].concat();
    for block in 1..=BLOCKS {
        record.extend(((block * BLOCK) as u64).to_le_bytes());
        record.extend(&tree[32..38]);
        record.extend([0, 0]);
    }
    let length = record.len() as u16;
    record[2..4].copy_from_slice(&length.to_le_bytes());
    page[end..end + record.len()].copy_from_slice(&record);
    page[PAGE_BYTES - 4..PAGE_BYTES - 2].copy_from_slice(&(end as u16).to_le_bytes());
    // Updates the slot count, the number of free bytes, and the offset of free data in the page header.
    let free = u16::from_le_bytes([page[28], page[29]]) - length - 2;
    page[22] = 2;
    page[28..30].copy_from_slice(&free.to_le_bytes());
    page[30..32].copy_from_slice(&(end as u16 + length).to_le_bytes());
    file.write(last, &mut page);
    // Changes the pointer in the row to the address of the new root record.
    let pointer = [&[4, 0, 1, 0, 1, 0], &tree[node + 4..node + 10]].concat();
    let mut rows = file.user_pages(PageType::Data).into_iter();
    let place = |page: &PageBytes| page.windows(pointer.len()).position(|bytes| bytes == pointer);
    let (mut row, at) = rows.find_map(|page| Some((page, place(&page)?))).unwrap();
    row[at + 2] = 2;
    row[at + 12..at + 16].copy_from_slice(&((BLOCK * BLOCKS) as u32).to_le_bytes());
    row[at + 16..at + 20].copy_from_slice(&last.to_le_bytes());
    row[at + 22] = 1;
    let number = u32::from_le_bytes(row[32..36].try_into().unwrap());
    file.write(number, &mut row);
    first
}

/// Writes the number of points into the header of the value.
pub(crate) fn write_points(folder: &Path, first: u32, points: usize) {
    let file = Pages::of(folder);
    let mut page = file.read(first);
    page[110..116].copy_from_slice(&[0xE6, 0x10, 0, 0, 1, 4]);
    page[116..120].copy_from_slice(&(points as u32).to_le_bytes());
    file.write(first, &mut page);
}

/// Changes the catalog, so that the second column of the only table has the type geometry.
fn make_geometry(file: &Pages, files: &[PathBuf]) {
    const GEOMETRY: i32 = 129;
    let source = source::DataFiles::open(files).unwrap();
    let database = catalog::load(&source);
    let table = database.objects.values().find(|object| object.name == "shapes").unwrap().id;
    let rowset = database.rowsets.iter().find(|rowset| rowset.object_id == table).unwrap();
    let mut changes = Vec::new();
    let number = |value: Option<&[u8]>| value.map_or(0, format::bytes::unsigned);
    let is_column = |of: &[Option<&[u8]>], id: u64| (number(of[0]), number(of[1])) == (id, 2);
    let columns_of = |base: i32, name: &str| {
        let id = database.columns[&base].iter().find(|column| column.name == name).unwrap().id;
        let rows = database.rowsets.iter().find(|rowset| rowset.object_id == base && rowset.index_id == 1).unwrap();
        rows.layout.column(id).unwrap().leaf_offset as usize
    };
    catalog::read_base_table(&source, &database, 3, &["rsid", "rscolid"], |at, row| {
        if is_column(row, rowset.id) {
            changes.push((at, columns_of(3, "ti"), vec![240]));
        }
    })
    .unwrap();
    catalog::read_base_table(&source, &database, 41, &["id", "colid"], |at, row| {
        if is_column(row, table as u64) {
            changes.push((at, columns_of(41, "xtype"), vec![240]));
            changes.push((at, columns_of(41, "utype"), GEOMETRY.to_le_bytes().to_vec()));
        }
    })
    .unwrap();
    assert_eq!(changes.len(), 3);
    for (at, offset, bytes) in changes {
        let mut page = file.read(at.page.page);
        let from = Pages::record(&page, at.slot.into()) + offset;
        page[from..from + bytes.len()].copy_from_slice(&bytes);
        file.write(at.page.page, &mut page);
    }
}
