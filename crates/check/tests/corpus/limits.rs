//! Triggers limits by changing the catalog of a sound database in memory. The changed catalog declares something that
//! is unknown or that makes a verification impossible. Such a change must never cause a finding.

use catalog::{
    Boundary, ConstraintKind, Database, Expression, ExpressionKind, Identity, IdentityMark, IndexType, Rowset,
    RowsetColumn,
};
use findings::registry::limits::{self, Limit};
use findings::{Options, Scope};
use format::boot::status::CLEAN_SHUTDOWN;
use format::types::{TypeInfo, xtype};
use format::{PAGE_BYTES, PageId, PageType};
use libtest_mimic::Trial;

use crate::image::{Image, get16, offset_of, put_page};
use crate::partitions::partition;
use crate::subjects::{self, ORDERS_2019, SHOP, SPECIMEN};

/// The limit to trigger, the database, and a change of its catalog.
type Case = (&'static Limit, &'static str, fn(&mut Database));

/// One test per limit or state.
pub fn lab_trials() -> Vec<Trial> {
    let cases = [indexes(), expressions(), constraints(), identities(), partitions(), tables()];
    let all = cases.into_iter().flatten().map(|(limit, subject, alter)| trial(vec![limit], subject, |_| {}, alter));
    all.chain(states().into_iter().map(|(limits, subject, edit, alter)| trial(limits, subject, edit, alter))).collect()
}

fn trial(limits: Vec<&'static Limit>, subject: &'static str, edit: fn(&mut Image), alter: fn(&mut Database)) -> Trial {
    let ids: Vec<&str> = limits.iter().map(|limit| limit.id).collect();
    Trial::test(format!("limits: {} ({})", ids.join(", "), subjects::short(subject)), move || {
        let mut image = subjects::image(subject);
        edit(&mut image);
        let scope = match limits[..] {
            [limit] if *limit == limits::CONSTRAINT_OUT_OF_SCOPE => {
                Scope::Tables(vec![table(&image.database(), "Product")])
            }
            _ => Scope::Database,
        };
        let options = Options {
            scope,
            constraints: true,
            identities: true,
            extended_logical_checks: true,
            data_purity: Some(true),
            ..Options::default()
        };
        let report = image.check_changed(&options, alter);
        if !report.findings.is_empty() {
            let texts: Vec<String> = report.findings.iter().map(|finding| finding.text(&report.names())).collect();
            return Err(format!("{texts:#?}").into());
        }
        let is_met = |limit: &&Limit| report.not_verified.iter().any(|entry| entry.limit == *limit);
        match limits.iter().copied().find(|limit| !is_met(limit)) {
            None => Ok(()),
            Some(limit) => Err(format!("{limit:?} not met: {:#?}", report.not_verified).into()),
        }
    })
}

fn table(database: &Database, name: &str) -> i32 {
    database.objects.values().find(|object| object.name == name && object.type_code == "U").expect("table").id
}

fn index(database: &Database, name: &str) -> (i32, i32) {
    let index = database.indexes.values().find(|index| index.name == name).expect("index");
    (index.object_id, index.index_id)
}

fn rowsets(database: &mut Database, of: (i32, i32)) -> impl Iterator<Item = &mut Rowset> {
    database.rowsets.iter_mut().filter(move |rowset| (rowset.object_id, rowset.index_id) == of)
}

/// A column of a heap or clustered index.
fn column<'a>(database: &'a mut Database, of: &str, name: &str) -> &'a mut RowsetColumn {
    let object = table(database, of);
    let id = column_id(database, of, name);
    let mut rowsets = database.rowsets.iter_mut().filter(|rowset| rowset.object_id == object && rowset.index_id <= 1);
    let rowset = rowsets.next().expect("rowset");
    rowset.layout.columns.iter_mut().find(|column| column.id == id).expect("column")
}

fn column_id(database: &Database, of: &str, name: &str) -> u32 {
    database.columns[&table(database, of)].iter().find(|column| column.name == name).expect("column").id
}

const BY_PRODUCT: &str = "IX_SalesOrderDetail_ProductID";

fn indexes() -> Vec<Case> {
    vec![
        (&limits::INDEX_DISABLED, SHOP, |database| {
            let at = index(database, BY_PRODUCT);
            database.indexes.get_mut(&at).expect("index").status |= 0x80;
        }),
        (&limits::INDEX_KEY_COLUMNS, SHOP, |database| {
            let at = index(database, "AK_SalesOrderDetail_rowguid");
            rowsets(database, at).for_each(|rowset| drop(rowset.layout.columns.pop()));
        }),
        (&limits::INDEX_COLUMN_TYPE, SHOP, |database| {
            let at = index(database, BY_PRODUCT);
            rowsets(database, at).for_each(|rowset| rowset.layout.columns[0].info.xtype = xtype::IMAGE);
        }),
        (&limits::INDEX_TYPES_DIFFER, SHOP, |database| {
            let at = index(database, BY_PRODUCT);
            rowsets(database, at).for_each(|rowset| rowset.layout.columns[0].info.xtype = xtype::SMALLMONEY);
        }),
        (&limits::ROWS_COLUMNS_DIFFER, SPECIMEN, |database| {
            let at = index(database, "ix_day");
            let last = rowsets(database, at).last().expect("a partition");
            last.layout.columns.iter_mut().for_each(|column| column.id += 10);
        }),
        (&limits::EXTENDED_SPATIAL, SHOP, |database| {
            let at = index(database, BY_PRODUCT);
            database.indexes.get_mut(&at).expect("index").index_type = IndexType::Spatial;
        }),
        (&limits::EXTENDED_XML_FORM, SHOP, |database| {
            let at = index(database, BY_PRODUCT);
            database.indexes.get_mut(&at).expect("index").index_type = IndexType::Xml;
        }),
        (&limits::EXTENDED_VIEW, SHOP, |database| {
            let object = table(database, "Suppliers");
            database.objects.get_mut(&object).expect("object").type_code = "V".to_owned();
        }),
    ]
}

/// Changes the definition of the column `computed.product`, `a * b`.
fn define(database: &mut Database, text: &str) {
    let object = table(database, "computed");
    let is_it = |expression: &&mut Expression| {
        (expression.object_id, expression.kind) == (object, ExpressionKind::ComputedColumn)
    };
    database.expressions.iter_mut().find(is_it).expect("expression").text = Some(text.to_owned());
}

/// Changes the condition of `CK_Product_ListPrice`.
fn demand(database: &mut Database, text: &str) {
    let check = database.expressions.iter_mut().find(|expression| expression.kind == ExpressionKind::Check);
    check.expect("condition").text = Some(text.to_owned());
}

fn expressions() -> Vec<Case> {
    vec![
        (&limits::EXPRESSION_CODE_PAGE, SPECIMEN, |database| define(database, "([a]+'\u{e9}')")),
        (&limits::EXPRESSION_UNSUPPORTED, SPECIMEN, |database| define(database, "(newid())")),
        (&limits::EXPRESSION_NO_VALUE, SPECIMEN, |database| define(database, "([a]>[b])")),
        (&limits::EXPRESSION_TYPE, SPECIMEN, |database| define(database, "(CONVERT([bigint],[a]))")),
        (&limits::EXPRESSION_NO_CONDITION, SHOP, |database| demand(database, "([ListPrice]+(1))")),
    ]
}

fn constraints() -> Vec<Case> {
    fn foreign_key(database: &mut Database) -> &mut ConstraintKind {
        let is_key = |kind: &ConstraintKind| matches!(kind, ConstraintKind::ForeignKey { .. });
        database.constraints.iter_mut().map(|constraint| &mut constraint.kind).find(|kind| is_key(kind)).expect("key")
    }
    vec![
        (&limits::CONSTRAINT_OUT_OF_SCOPE, SHOP, |_| {}),
        (&limits::CONSTRAINT_STATUS, SHOP, |database| database.constraints[0].status |= 0x8000_0000),
        (&limits::CONSTRAINT_COLUMNS, SHOP, |database| {
            if let ConstraintKind::ForeignKey { columns, .. } = foreign_key(database) {
                columns.clear();
            }
        }),
        (&limits::CONSTRAINT_COLUMN_NOT_STORED, SHOP, |database| {
            if let ConstraintKind::ForeignKey { columns, .. } = foreign_key(database) {
                columns[0].0 = 99;
            }
        }),
        (&limits::CONSTRAINT_TYPES_DIFFER, SHOP, |database| {
            let price = column_id(database, "Product", "Weight");
            if let ConstraintKind::ForeignKey { columns, .. } = foreign_key(database) {
                columns[0].0 = price;
            }
        }),
        (&limits::CONSTRAINT_COLUMN_TYPE, SHOP, |database| {
            column(database, "ProductModel", "Name").info.length = 0xFFFF;
            let name = column_id(database, "ProductModel", "Name");
            if let ConstraintKind::ForeignKey { columns, .. } = foreign_key(database) {
                columns[0].1 = name;
            }
        }),
        (&limits::ROWS_NOT_IN_FILES, SHOP, |database| {
            if let ConstraintKind::ForeignKey { referenced_id, .. } = foreign_key(database) {
                *referenced_id = 12_345;
            }
        }),
    ]
}

/// Declares a column as an identity column.
fn identity(database: &mut Database, of: &str, column_id: u32) {
    let mark = IdentityMark { current: 1_000_000, increment: 1, seed: 1, is_used: true };
    let table_id = table(database, of);
    database.identities.push(Identity { table_id, column_id, mark: Some(mark) });
}

fn identities() -> Vec<Case> {
    vec![
        (&limits::IDENTITY_COLUMN, SHOP, |database| identity(database, "Suppliers", 99)),
        (&limits::IDENTITY_COLUMN_FORM, SPECIMEN, |database| {
            let three = column_id(database, "sparse", "three");
            column(database, "sparse", "three").info =
                TypeInfo { length: 8, ..TypeInfo::from_ti(xtype::BINARY.into()) };
            identity(database, "sparse", three);
        }),
        (&limits::IDENTITY_VALUES, SPECIMEN, |database| {
            let one = column_id(database, "sparse", "one");
            identity(database, "sparse", one);
        }),
    ]
}

/// Makes `Product` the first of two partitions, with all its rows below the boundary. `change` then modifies the
/// boundaries.
fn partitioned(database: &mut Database, change: impl FnOnce(&mut Vec<Vec<Boundary>>)) {
    partition(database, 1_000);
    change(&mut database.partition_functions.values_mut().next().expect("function").candidates);
}

fn partitions() -> Vec<Case> {
    vec![
        (&limits::PARTITION_BOUNDARIES, SHOP, |database| partitioned(database, Vec::clear)),
        (&limits::PARTITION_BOUNDARIES_COUNT, SHOP, |database| partitioned(database, |lists| lists[0].clear())),
        (&limits::PARTITION_BOUNDARIES_SEVERAL, SHOP, |database| {
            partitioned(database, |lists| lists.push(lists[0].clone()));
        }),
        (&limits::PARTITION_BOUNDARIES_TYPE, SHOP, |database| {
            partitioned(database, |lists| lists[0][0].info = TypeInfo::from_ti(xtype::BIGINT.into()));
        }),
        (&limits::PARTITION_BOUNDARIES_ORDER, SHOP, |database| {
            partitioned(database, |lists| {
                let same = lists[0][0].clone();
                lists[0].push(same);
            });
        }),
        (&limits::PARTITION_COLUMN, SHOP, |database| {
            partition(database, 1_000);
            database.partitioned.values_mut().for_each(|partitioned| partitioned.column_id = 99);
        }),
    ]
}

fn tables() -> Vec<Case> {
    vec![
        // No release has version 645. A database has this version if an upgrade from SQL Server 2005 was interrupted.
        (&limits::CATALOG_VERSION, SHOP, |database| database.boot.as_mut().expect("boot page").version = 645),
        (&limits::VERSION_UNKNOWN, ORDERS_2019, |database| database.boot.as_mut().expect("boot page").version = 1_100),
        (&limits::FILESTREAM_FILES, SHOP, |database| {
            column(database, "Suppliers", "HomePage").status |= catalog::column_status::FILESTREAM;
        }),
        (&limits::COLUMN_TYPE, SHOP, |database| column(database, "Suppliers", "City").info.xtype = 250),
        (&limits::COLUMN_FIXED_AS_VARIABLE, SHOP, |database| {
            column(database, "Suppliers", "City").info = TypeInfo::from_ti(xtype::BIGINT.into());
        }),
        (&limits::COLUMN_UNKNOWN, SHOP, |database| {
            let object = table(database, "Suppliers");
            database.columns.get_mut(&object).expect("columns").pop();
        }),
        (&limits::ROWS_COMPRESSION, SPECIMEN, |database| {
            database.rowsets.iter_mut().for_each(|rowset| rowset.expansion = None);
        }),
        (&limits::COLUMNSTORE_CATALOG, SHOP, |database| database.columnstore.unread.push("syscscolsegments")),
    ]
}

/// The limits that are triggered together, the database, a change of its pages, and a change of its catalog.
type Edit = (Vec<&'static Limit>, &'static str, fn(&mut Image), fn(&mut Database));

/// States of a database in which a finding would prove nothing.
fn states() -> Vec<Edit> {
    vec![
        (
            vec![&limits::DEMOTED_LOG],
            ORDERS_2019,
            |image| {
                break_link(image);
                make_dirty(image);
            },
            |_| {},
        ),
        (vec![&limits::DEMOTED_RELEASE], ORDERS_2019, lose_value, |database| {
            database.boot.as_mut().expect("boot page").version = 1_100;
        }),
        (vec![&limits::IDENTITY_LOG], SPECIMEN, make_dirty, |database| {
            let id = column_id(database, "partitioned", "id");
            identity(database, "partitioned", id);
        }),
        (
            vec![&limits::PAGES_IN_TRANSIT],
            ORDERS_2019,
            |image| {
                let leaf = image.tree(false).leaves[1];
                image.edit(leaf, |bytes| bytes[1] = PageType::ReorgTemporary as u8);
            },
            |_| {},
        ),
        (
            vec![&limits::CATALOG_ENCRYPTED, &limits::ALLOCATION_ENCRYPTED, &limits::ENCRYPTED_PAGES],
            ORDERS_2019,
            encrypt,
            |_| {},
        ),
        (
            vec![
                &limits::ENCRYPTED_ZEROS,
                &limits::ENCRYPTED_PAGE_TYPE,
                &limits::ENCRYPTED_PLAIN_PAGES,
                &limits::ENCRYPTED_LINKS,
            ],
            ORDERS_2019,
            |image| {
                let leaves = image.tree(true).leaves;
                let plain = image.page(leaves[0]);
                break_link(image);
                encrypt(image);
                image.edit(leaves[0], |bytes| *bytes = plain);
                image.edit_unsealed(leaves[1], |bytes| bytes.fill(0));
                image.edit(leaves[9], |bytes| bytes[1] = 0x65);
            },
            |_| {},
        ),
    ]
}

/// Makes a leaf page name the wrong next page.
fn break_link(image: &mut Image) {
    let leaves = image.tree(true).leaves;
    image.edit(leaves[3], |bytes| put_page(bytes, 16, PageId::new(1, leaves[5])));
}

/// Makes the fifth column of a row NULL without changing the bytes of its value.
fn lose_value(image: &mut Image) {
    let leaf = image.tree(true).leaves[3];
    image.edit(leaf, |bytes| {
        let at = offset_of(bytes, 0);
        let bitmap = at + usize::from(get16(bytes, at + 2)) + 2;
        bytes[bitmap] |= 0b1_0000;
    });
}

/// Clears the clean shutdown bit, as if the server had been killed.
fn make_dirty(image: &mut Image) {
    image.edit(9, |bytes| {
        let status = u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]) & !CLEAN_SHUTDOWN;
        bytes[132..136].copy_from_slice(&status.to_le_bytes());
    });
}

/// Marks every page as encrypted and overwrites its content, except the file header and the boot page.
fn encrypt(image: &mut Image) {
    for page in (1..(image.bytes.len() / PAGE_BYTES) as u32).filter(|page| *page != 9) {
        if image.page(page)[0] != 0 {
            image.edit(page, |bytes| {
                bytes[5] |= 0x04;
                bytes[96..].fill(0xA7);
            });
        }
    }
}
