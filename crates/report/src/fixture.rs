//! Hand-made reports for the tests.

use catalog::UnitKind;
use findings::{
    BrokerCount, DatabaseSummary, Finding, Owner, Report, RowsetCounts, UnitFileTotals, UnitTotals, registry,
};
use format::{AllocUnitId, PageId};

use crate::{Format, View};

/// A report without rowsets or findings.
pub(crate) fn report(database: &str, id: u16) -> Report {
    Report {
        database: DatabaseSummary { name: database.to_owned(), id, version: 957, ..DatabaseSummary::default() },
        ..Report::default()
    }
}

/// The number of Service Broker objects of each kind in a new database.
pub(crate) fn service_broker() -> Vec<BrokerCount> {
    let kinds = [
        (9675, "Message Types", 14),
        (9676, "Service Contracts", 6),
        (9667, "Services", 3),
        (9668, "Service Queues", 3),
        (9669, "Conversation Endpoints", 0),
        (9674, "Conversation Groups", 0),
        (9670, "Remote Service Bindings", 0),
        (9605, "Conversation Priorities", 0),
    ];
    kinds.map(|(number, name, count)| BrokerCount { number, name, count }).into()
}

/// A table with one partition and a clustered index.
pub(crate) fn rowset(schema: &str, name: &str, object_id: i32, (rows, data_pages): (u64, u64)) -> RowsetCounts {
    RowsetCounts {
        object_id,
        schema: schema.to_owned(),
        name: name.to_owned(),
        type_code: "U".to_owned(),
        index_id: 1,
        index_name: format!("PK_{name}"),
        partition: 1,
        partition_id: 72_057_594_045_726_720,
        rows,
        data_pages,
        iam_pages: 1,
        units: vec![UnitTotals {
            alloc_unit: AllocUnitId(72_057_594_052_476_928),
            type_name: "In-row data",
            first_iam: PageId::new(1, 188),
            root: PageId::new(1, 189),
            data_pages: data_pages.cast_signed(),
            used_pages: data_pages + 1,
            extents: 1,
            files: vec![UnitFileTotals { file_id: 1, extents: 1, used_pages: data_pages + 1, mixed_pages: 2 }],
        }],
        ..RowsetCounts::default()
    }
}

/// The owner of rows or pages in a clustered index.
pub(crate) fn owner(object_id: i32, partition_id: u64, alloc_unit: u64) -> Owner {
    Owner { object_id, index_id: 1, partition_id, alloc_unit: AllocUnitId(alloc_unit), kind: Some(UnitKind::InRow) }
}

/// A finding that a page differs from what was written.
pub(crate) fn page_io(owner: Owner, page: PageId, value: i64, against: i64) -> Finding {
    Finding::new(&registry::PAGE_IO)
        .owner(owner)
        .page(page)
        .page_value("header_page", page)
        .text_value("test", "IS_OFF (BUF_IOERR, pBUF->bstat)")
        .number("value", value)
        .number("against", against)
}

/// docs/format/cases.md#case-16: the only leaf page of a clustered index is damaged.
pub(crate) fn case_16() -> Report {
    let mut report = report("ExamplesDB_CorruptionCheckDB", 21);
    let owner = owner(901_578_250, 72_057_594_045_726_720, 72_057_594_052_476_928);
    let page = PageId::new(1, 392);
    report.rowsets = vec![rowset("dbo", "Customer", 901_578_250, (0, 0))];
    report.findings = vec![
        page_io(owner, page, 133_129, -4),
        Finding::new(&registry::PAGE_UNPROCESSED).owner(owner).at(page, 0),
        Finding::new(&registry::TREE_CHILDREN_UNSEEN)
            .owner(owner)
            .page(page)
            .ref_at(PageId::NONE, 0)
            .page_value("other_page", PageId::NONE),
    ]
    .into();
    report
}

/// The text of `report` in `format`.
pub(crate) fn shown(format: Format, report: &Report, view: View) -> String {
    let mut out = Vec::new();
    crate::write(format, report, view, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
