//! Damage to the order details and to their index on the product.

use super::*;

/// Damage to the order details.
pub(super) fn details() -> Vec<(&'static str, Damage)> {
    [values(), rows()].concat()
}

/// Damage to values and locators.
fn values() -> Vec<(&'static str, Damage)> {
    vec![
        ("indexed value of a table row changed", |image| {
            let subject = Subject::details(image);
            let at = subject.table.at[100];
            let entry = subject.entry_of(image, at);
            subject.table.write(image, at, subject.table.named("ProductID"), &7i32.to_le_bytes());
            let rows = [subject.detail(image, true, at), subject.detail(image, false, entry)];
            assert!(rows[0].values.starts_with("ProductID = 7 and"));
            subject.messages(&rows)
        }),
        ("indexed values of many table rows changed", |image| {
            let subject = Subject::details(image);
            let mut rows = Vec::new();
            for &at in subject.table.at.iter().step_by(3) {
                let entry = subject.entry_of(image, at);
                subject.table.write(image, at, subject.table.named("ProductID"), &(-1i32).to_le_bytes());
                rows.extend([subject.detail(image, true, at), subject.detail(image, false, entry)]);
            }
            assert_eq!(rows.len(), 2 * 542usize.div_ceil(3));
            subject.messages(&rows)
        }),
        ("key of an index row changed", |image| {
            let subject = Subject::details(image);
            let product = |image: &Image, at: RecordId| subject.index.int(image, at, subject.index.column(1));
            // Finds a row whose key can be lowered by one without changing the order of the keys.
            let at = *subject
                .index
                .at
                .windows(2)
                .find(|pair| pair[0].page == pair[1].page && product(image, pair[1]) - product(image, pair[0]) > 1)
                .expect("a gap between keys")
                .last()
                .expect("two rows");
            let entry = subject.detail(image, false, at);
            let data = |at: &&RecordId| subject.detail(image, true, **at).values == entry.values;
            let row = *subject.table.at.iter().find(data).expect("its row");
            let changed = product(image, at) - 1;
            subject.index.write(image, at, subject.index.column(1), &changed.to_le_bytes());
            subject.messages(&[subject.detail(image, true, row), subject.detail(image, false, at)])
        }),
        ("locators of two index rows exchanged", |image| {
            let subject = Subject::details(image);
            let (one, other) = exchangeable(image, &subject);
            let before = [subject.detail(image, false, one), subject.detail(image, false, other)];
            for id in [2, 3] {
                let column = subject.index.column(id);
                let values = [one, other].map(|at| subject.index.value(image, at, column).expect("value"));
                subject.index.write(image, one, column, &values[1]);
                subject.index.write(image, other, column, &values[0]);
            }
            let mut rows: Vec<Lone> = [one, other].map(|at| subject.detail(image, false, at)).into();
            for entry in before {
                let data = |at: &&RecordId| subject.detail(image, true, **at).values == entry.values;
                let at = *subject.table.at.iter().find(data).expect("its row");
                rows.push(subject.detail(image, true, at));
            }
            subject.messages(&rows)
        }),
    ]
}

/// Rows that are lost or doubled.
fn rows() -> Vec<(&'static str, Damage)> {
    vec![
        ("row of an index lost", |image| {
            let subject = Subject::details(image);
            let at = subject.table.at[33];
            subject.index.remove(image, subject.entry_of(image, at));
            subject.messages(&[subject.detail(image, true, at)])
        }),
        ("row of a table lost", |image| {
            let subject = Subject::details(image);
            let rowguids = Subject::of_details(image, "AK_SalesOrderDetail_rowguid");
            let at = *subject.table.at.iter().find(|at| at.slot == 9).expect("a row");
            let entry = subject.detail(image, false, subject.entry_of(image, at));
            let guid = subject.table.value(image, at, subject.table.named("rowguid")).expect("value");
            let column = rowguids.index.column(1);
            let holds = |at: &&RecordId| rowguids.index.value(image, **at, column).as_ref() == Some(&guid);
            let values = format!(
                "rowguid = '{}' and {}",
                format::types::guid_text(*guid.first_chunk().expect("16 bytes")),
                entry.identity
            );
            let by_guid = Lone {
                is_of_table: false,
                at: *rowguids.index.at.iter().find(holds).expect("its index row"),
                identity: entry.identity.clone(),
                values,
            };
            subject.table.remove(image, at);
            [subject.messages(&[entry]), rowguids.messages(&[by_guid])].concat()
        }),
        ("row of an index written twice", |image| {
            let subject = Subject::details(image);
            let has_room = |at: &&RecordId| subject.index.has_room(image, **at);
            let at = *subject.index.at.iter().find(has_room).expect("a page with room");
            subject.index.duplicate(image, at);
            // Only the duplicate key is reported. The index is not compared with its table, because the structure of
            // the index is damaged.
            let database = image.database();
            let is_index = |unit: &&catalog::AllocUnit| {
                let rowset = database.rowset_of(unit);
                rowset.is_some_and(|row| {
                    (row.object_id, row.index_id) == (subject.index.object_id, subject.index.index_id)
                })
            };
            let unit = database.units.iter().find(is_index).expect("unit");
            vec![format!(
                "2512 Table error: Object ID {}, index ID {}, partition ID {}, alloc unit ID {} (type In-row data). \
                 Duplicate keys on page {} slot {} and page {} slot {}.",
                subject.index.object_id,
                subject.index.index_id,
                database.rowset_of(unit).expect("rowset").id,
                unit.id,
                at.page,
                at.slot,
                at.page,
                at.slot + 1
            )]
        }),
    ]
}
