//! Damage to pages at fixed addresses, to base tables, and to the file as a whole.

use catalog::{AllocUnit, UnitKind};

use super::*;

pub fn kinds() -> Vec<(&'static str, Damage)> {
    [rows(), leaves(), roots(), file_headers()].concat()
}

/// Damage to rows of base tables.
fn rows() -> Vec<(&'static str, Damage)> {
    vec![
        ("page count negative", |image, facts| {
            edit_unit_bytes(image, facts.clustered.unit.id, 41, &(-5i64).to_le_bytes());
            vec![(2508, 0)]
        }),
        ("owner of an allocation unit does not exist", |image, facts| {
            edit_unit_bytes(image, facts.nonclustered.unit.id, 9, &0x7777_0000u64.to_le_bytes());
            // The nonclustered index of sysallocunits by owner no longer matches the table.
            vec![(8930, 0), (ANY, 0)]
        }),
        ("sysschobjs in another filegroup", |image, _| {
            let database = image.database();
            let is_wanted = |unit: &&AllocUnit| {
                let rowset = database.rowset_of(unit);
                rowset.is_some_and(|row| (row.object_id, row.index_id) == (34, 1)) && unit.kind == UnitKind::InRow
            };
            let unit = database.units.iter().find(is_wanted).expect("sysschobjs");
            edit_unit_bytes(image, unit.id, 21, &7u16.to_le_bytes());
            vec![(8995, 0), (8996, unit.first_iam.page), (ANY, 0)]
        }),
        ("catalog row of an object in a schema that does not exist", |image, _| {
            let object = image.database().objects.values().find(|object| object.type_code == "U").expect("table").id;
            let page = image.edit_object(object, |row| row[4 + 4..4 + 8].copy_from_slice(&4242u32.to_le_bytes()));
            vec![(8992, page), (ANY, 0)]
        }),
        ("catalog lost and a page damaged", |image, facts| {
            let first = image.database().boot.expect("boot page").first_sysallocunits.page;
            let [_, page, _] = middle(&facts.clustered);
            image.edit_unsealed(first, |bytes| bytes.fill(0));
            image.edit_unsealed(page, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            let mut zeroed = image.clone();
            zeroed.edit_unsealed(page, |bytes| bytes.fill(0));
            assert!(
                zeroed.check().findings.iter().any(|f| (f.check.msg, f.page) == (5256, Some(PageId::new(1, page))))
            );
            vec![(7985, first), (5256, first), (5233, page)]
        }),
    ]
}

/// Damage to the boot page, and to leaves of base tables.
fn leaves() -> Vec<(&'static str, Damage)> {
    vec![
        ("boot page damaged", |image, _| {
            image.edit_unsealed(9, |bytes| bytes.fill(0));
            vec![(5250, 9)]
        }),
        ("sysallocunits: leaf page zeroed", |image, _| {
            let page = image.database().boot.expect("boot page").first_sysallocunits.page;
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            vec![(7985, page), (5256, page)]
        }),
        ("sysrscols: leaf damaged, and a page of another table", |image, facts| {
            let (page, [_, other, _]) = (leftmost(image, 3), middle(&facts.clustered));
            let flip = |bytes: &mut PageBytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3);
            image.edit_unsealed(page, flip);
            image.edit_unsealed(other, flip);
            // About the system table, only the damaged page must be reported. Findings in other tables must be reported
            // as usual.
            let report = image.check();
            let repair = report.findings.iter().find(|finding| finding.page == Some(PageId::new(1, page)));
            assert!(repair.is_some_and(|finding| finding.repair() == findings::registry::Repair::None));
            vec![(7985, page), (5233, page), (8939, other), (ANY, 0)]
        }),
        ("sysrowsets: page type changed", |image, _| {
            let page = leftmost(image, 5);
            image.edit(page, |bytes| bytes[1] = 10);
            vec![(7984, page)]
        }),
        ("sysrowsets: chain goes on in another table", |image, facts| {
            let page = leftmost(image, 5);
            let [_, other, _] = middle(&facts.clustered);
            image.edit(page, |bytes| put_page(bytes, 16, PageId::new(1, other)));
            vec![(7986, page)]
        }),
        ("sysrscols: previous pointer wrong", |image, _| {
            let page = leftmost(image, 3);
            let next = Page::new(&image.page(page)).header().next().page;
            image.edit(next, |bytes| put_page(bytes, 8, PageId::new(1, 77)));
            vec![(7987, page)]
        }),
        ("sysrscols: chain cut short", |image, _| {
            let page = leftmost(image, 3);
            let next = Page::new(&image.page(page)).header().next().page;
            image.edit(page, |bytes| bytes[16..22].fill(0));
            // The column layouts of other tables are incomplete now, but this must not cause findings in these tables.
            vec![(8978, next)]
        }),
        ("sysrscols: chain cyclic", |image, _| {
            let page = leftmost(image, 3);
            let next = Page::new(&image.page(page)).header().next().page;
            image.edit(next, |bytes| put_page(bytes, 16, PageId::new(1, page)));
            vec![(7988, page)]
        }),
    ]
}

/// Damage to roots, and to pages that mdfsck can do without.
fn roots() -> Vec<(&'static str, Damage)> {
    vec![
        ("sysrscols: root damaged", |image, _| {
            // The leaf pages are still linked, so all rows are known and other tables have no finding. A server would
            // end its run here.
            let (leaf, root) = (leftmost(image, 3), root(image, 3));
            assert_ne!(leaf, root);
            image.edit_unsealed(root, |bytes| bytes.fill(0));
            vec![(7985, root), (5256, root)]
        }),
        ("sysiscols: root damaged, and its first leaf", |image, _| {
            // The columns of indexes are unknown now, so no index row may be reported as missing.
            let (leaf, root) = (leftmost(image, 55), root(image, 55));
            image.edit_unsealed(root, |bytes| bytes.fill(0));
            image.edit_unsealed(leaf, |bytes| bytes.fill(0));
            let findings = image.check().findings;
            assert!(findings.iter().all(|finding| !matches!(finding.check.msg, 8951 | 8952 | 2511)), "{findings:?}");
            vec![(8909, leaf), (8928, leaf), (ANY, 0)]
        }),
        ("root of an index that has no pages", |image, _| {
            let database = image.database();
            let is_empty_tree = |unit: &&AllocUnit| {
                let index = database.rowset_of(unit).map_or(0, |rowset| rowset.index_id);
                unit.root.is_none() && unit.first_iam.is_none() && unit.kind == UnitKind::InRow && index > 0
            };
            let unit = database.units.iter().find(is_empty_tree).expect("an empty index").id;
            edit_unit(image, unit, 29, PageId::new(1, 4_000_000));
            vec![(8980, 4_000_000), (ANY, 0)]
        }),
        ("sysschobjs: page damaged", |image, _| {
            let page = leftmost(image, 34);
            let right = Page::new(&image.page(page)).header().next().page;
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            let mut expected = vec![(7995, 0), (8909, page), (8928, page), (8980, page)];
            // In a small database, the table has only one leaf.
            expected.extend((right != 0).then_some((8978, right)));
            expected
        }),
    ]
}

/// Damage to the file header.
fn file_headers() -> Vec<(&'static str, Damage)> {
    vec![
        ("file header whose record says that it is a moved row", |image, _| {
            image.edit(0, |bytes| bytes[offset_of(bytes, 0)] |= 2);
            vec![(5250, 0)]
        }),
        ("file header with a level, and flags of an encrypted page", |image, _| {
            image.edit(0, |bytes| {
                bytes[3] = 0x49;
                bytes[4] |= 0xDB & !0x03;
            });
            vec![(5250, 0)]
        }),
        ("file header damaged", |image, _| {
            image.edit_unsealed(0, |bytes| bytes.fill(0));
            vec![(5250, 0)]
        }),
    ]
}
