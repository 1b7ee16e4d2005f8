//! Values of types for which no real sample exists, and the effects of other damage on off-row values.

use super::*;

/// Declares a (max) column as ntext or text. A table with the option "text in row" has the same form: the roots of
/// off-row values, and short values, are in the row.
pub(super) fn text_in_row(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let in_row = |values: &Values| values.references.iter().find(|r| r.in_row && !r.text_pointer).copied();
    let (_, reference) = Values::find(&image, in_row);
    let database = image.database();
    let unit = Page::new(&image.page(reference.from.page.page)).header().alloc_unit();
    let rowset = database.rowset_of(&database.units[database.unit_index(unit).expect("unit")]).expect("rowset");
    let is_large = |column: &&catalog::RowsetColumn| {
        matches!(column.info.xtype, xtype::NVARCHAR | xtype::VARCHAR) && matches!(column.info.length, 0 | u16::MAX)
    };
    let column = rowset.layout.columns.iter().find(is_large).expect("a (max) column");
    let kind = if column.info.xtype == xtype::NVARCHAR { xtype::NTEXT } else { xtype::TEXT };
    let key = [rowset.id.to_le_bytes().as_slice(), &column.id.to_le_bytes()].concat();
    image.edit_row_by(3, &key, |row| row[4 + 24..4 + 28].copy_from_slice(&[kind, 16, 0, 0]));
    let report = image.check();
    let unverified =
        report.not_verified.iter().find(|entry| entry.what == "LOB trees" || entry.what == "column values");
    match (report.findings.first(), unverified) {
        (None, None) => Ok(()),
        (first, unverified) => Err(format!("{first:?} {unverified:?}").into()),
    }
}

/// Declares a (max) column as xml, and makes its values begin like XML documents.
pub(super) fn documents(image: &Image) -> Result<(), Failed> {
    const SIGNATURE: [u8; 3] = [0xDF, 0xFF, 1];
    let mut image = image.clone();
    let database = image.database();
    let is_large = |column: &&catalog::RowsetColumn| {
        matches!(column.info.xtype, xtype::NVARCHAR | xtype::VARCHAR) && matches!(column.info.length, 0 | u16::MAX)
    };
    let direct = |values: &Values| {
        let first = |r: &&Reference| r.in_row && !r.text_pointer && r.at == r.start + 16;
        let mut firsts = values.references.iter().filter(first);
        firsts.find(|reference| values.fragment(reference.target).kind == 3).copied()
    };
    let found = (0..database.rowsets.len()).find_map(|at| {
        let rowset = &database.rowsets[at];
        let mut large = rowset.layout.columns.iter().filter(is_large);
        let column = large.next().filter(|_| large.next().is_none())?;
        let values = Values::of(&image, &database, at)?;
        let reference = direct(&values)?;
        Some((rowset, column, values, reference))
    });
    let (rowset, column, values, reference) = found.expect("a table with one (max) column");
    let key = [rowset.id.to_le_bytes().as_slice(), &column.id.to_le_bytes()].concat();
    image.edit_row_by(3, &key, |row| row[4 + 24..4 + 28].copy_from_slice(&[xtype::XML, 0, 0, 0]));
    for piece in values.fragments.iter().filter(|fragment| fragment.kind == 3) {
        image.edit(piece.at.page.page, |bytes| {
            bytes[piece.offset + 14..piece.offset + 17].copy_from_slice(&SIGNATURE);
        });
    }
    let units = rowset.units.iter().map(|unit| &database.units[*unit]).filter(|unit| unit.kind == UnitKind::InRow);
    for page in units.flat_map(|unit| pages_of(&image, unit.id)).collect::<Vec<_>>() {
        let bytes = image.page(page);
        if Page::new(&bytes).header().page_type != 1 {
            continue;
        }
        for slot in 0..Page::new(&bytes).header().slot_count.get() {
            let Ok(record) = Record::data(&bytes[offset_of(&bytes, slot)..]) else { continue };
            if let Stored::Plain(value @ [_, _, _, ..]) = column.stored(Level::Leaf, &record) {
                let at = place(&bytes, value);
                image.edit(page, |bytes| bytes[at..at + 3].copy_from_slice(&SIGNATURE));
            }
        }
    }
    let report = image.check();
    let unverified = report.not_verified.iter().find(|entry| entry.what == "column values");
    if !report.findings.is_empty() || unverified.is_some() {
        return Err(format!("{:?} {unverified:?}", report.findings.first()).into());
    }
    let first = values.fragment(reference.target);
    image.edit(first.at.page.page, |bytes| bytes[first.offset + 14] = b'<');
    let report = image.check();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.check.msg, place_of(&finding))).collect();
    if found == [(2570, reference.from)] { Ok(()) } else { Err(format!("{found:?}").into()) }
}

/// Turns the off-row values of a table into row-overflow data, because no real sample of row-overflow data exists. The
/// fragments stay the same, but the pointers get type 2 and the unit gets type 3. Each value has one fragment.
pub(super) fn overflow(image: &Image) -> (Image, Reference, Found) {
    let mut image = image.clone();
    let single = |values: &Values| {
        let pieces = values.fragments.len();
        let direct = values.references.iter().all(|reference| reference.in_row && !reference.text_pointer);
        let first = *values.references.first()?;
        (direct && values.references.len() == pieces).then(|| (first, values.fragment(first.target)))
    };
    let (values, (reference, piece)) = Values::find(&image, single);
    let database = image.database();
    let unit = Page::new(&image.page(piece.at.page.page)).header().alloc_unit();
    let rowset = database.rowset_of(&database.units[database.unit_index(unit).expect("unit")]).expect("rowset");
    for unit in rowset.units.iter().map(|unit| &database.units[*unit]).filter(|unit| unit.kind != UnitKind::InRow) {
        let kind = if unit.kind == UnitKind::Lob { 3 } else { 2 };
        image.edit_row(7, unit.id.0, |row| row[4 + 8] = kind);
    }
    for reference in &values.references {
        image.edit(reference.from.page.page, |bytes| bytes[reference.start] = 2);
    }
    (image, reference, piece)
}

pub(super) fn any_threads(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (piece, ..)) = Values::find(&image, Values::data);
    image.edit_unsealed(piece.at.page.page, |bytes| bytes.fill(0));
    let texts = |max_threads| {
        let report = image.check_with(&findings::Options { max_threads, ..findings::Options::default() });
        report.findings.iter().map(|finding| finding.text(&report.names())).collect::<Vec<_>>()
    };
    let one = texts(1);
    if one.len() > 3 && (2..8).all(|threads| texts(threads) == one) { Ok(()) } else { Err(one.join("\n").into()) }
}

pub(super) fn rows_damaged(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (_, _, row)) = Values::find(&image, Values::data);
    image.edit(row.page.page, |bytes| put16(bytes, 28, get16(bytes, 28) ^ 0x10));
    let report = image.check();
    let told = report.findings.iter().any(|finding| (finding.check.msg, finding.page) == (8928, Some(row.page)));
    match (told, lob_messages(&report).as_slice()) {
        (true, []) => Ok(()),
        (told, messages) => Err(format!("8928 {told}, {messages:?}").into()),
    }
}

pub(super) fn only_a_ghost(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let (_, (_, _, row)) = Values::find(&image, Values::data);
    image.edit(row.page.page, |bytes| {
        let at = offset_of(bytes, row.slot);
        bytes[at] |= 0x0C;
        put16(bytes, 58, get16(bytes, 58) + 1);
    });
    let report = image.check();
    let noted = report.not_verified.iter().any(|entry| entry.what == "LOB trees");
    match (noted, lob_messages(&report).as_slice()) {
        (true, []) => Ok(()),
        (noted, messages) => Err(format!("noted {noted}, {messages:?}").into()),
    }
}

/// Removes four bytes from the last variable column of a row. The column contains a pointer, whose length is then
/// impossible.
pub(super) fn impossible_length(image: &Image) -> Result<(), Failed> {
    let mut image = image.clone();
    let last = |values: &Values, image: &Image| {
        values.references.iter().filter(|reference| reference.in_row && !reference.text_pointer).find_map(|reference| {
            let page = image.page(reference.from.page.page);
            let at = offset_of(&page, reference.from.slot);
            let record = Record::data(&page[at..]).ok()?;
            let ends = at + usize::from(record.fixed_end()) + 4 + usize::from(record.column_count()).div_ceil(8);
            let (bytes, _) = record.variable(record.variable_count())?;
            let end = ends + 2 * (usize::from(record.variable_count()) - 1);
            (place(&page, bytes) == reference.start).then_some((*reference, end))
        })
    };
    let (_, (reference, end)) = Values::find(&image, |values| last(values, &image));
    image.edit(reference.from.page.page, |bytes| {
        put16(bytes, end, get16(bytes, end) - 4);
        put16(bytes, 28, get16(bytes, 28) + 4);
    });
    let expected = [(8960, reference.from), (8964, reference.target)];
    match lob_messages(&image.check()) {
        messages if messages == expected => Ok(()),
        messages => Err(format!("{messages:?}").into()),
    }
}
