//! The `orders` schema: an order-entry database with an example of everything that a checker must examine.
//!
//! * `customers`: clustered on an IDENTITY column, unique index on a name, sparse columns with a filtered index
//! * `products`: a heap with forwarded rows, empty slots, text values and a nonclustered index
//! * `orders`: a clustered, a covering and a descending index
//! * `order_lines`: the largest table, about a hundred rows per page, with two nonclustered indexes, one of them on a
//!   computed column, and a foreign key
//! * `documents`: xml, nvarchar(max), row-overflow values
//! * `events`: a heap with ghosts and a column of every plain type
//! * `price_history`: a page-compressed heap with an index, from SQL Server 2008 on
//! * `visits`: rows with the same clustering key, some with a version tag, on pages that are out of order

use crate::description::{
    Column, Compression, DEFAULT_COLLATION, Description, Expression, Filegroup, Filter, ForeignKey, Index, Table,
    Values,
};
use crate::page::PageVerify;
use crate::types::SqlType;
use crate::version::Version;

/// The number of lines in an order.
const LINES: u64 = 4;
/// The file space in bytes that each order line needs, including its share of the space for the other tables.
const BYTES_PER_LINE: u64 = 152;
/// Size in bytes of the smallest database.
const LEAST_BYTES: u64 = 8 << 20;

/// The schema, with about `bytes` bytes of data.
pub fn orders(version: Version, seed: u64, bytes: u64) -> Description {
    let lines = (bytes.saturating_sub(LEAST_BYTES) / BYTES_PER_LINE).max(400);
    let orders = lines.div_ceil(LINES);
    let small = |share: u64, least: u64, most: u64| (lines / share).clamp(least, most);
    let customers = (orders / 10).max(50);
    let mut tables = vec![
        self::customers(version, customers),
        products(small(500, 300, 100_000)),
        orders_table(orders, customers),
        order_lines(orders * LINES, small(500, 300, 100_000)),
        documents(small(2000, 40, 5_000)),
        events(version, small(1000, 500, 200_000)),
        visits(small(1000, 500, 200_000)),
    ];
    if version > Version::V611 {
        tables.push(price_history(small(200, 2_000, 500_000)));
    }
    Description {
        name: "orders".to_owned(),
        version,
        collation: DEFAULT_COLLATION,
        verify: PageVerify::Checksum,
        seed,
        filegroups: vec![Filegroup { name: "PRIMARY".to_owned(), files: 1 }],
        tables,
        least_pages: (LEAST_BYTES / 8192) as u32,
    }
}

fn serial(start: i64) -> Values {
    Values::Serial { start, step: 1 }
}

fn text(least: u32, most: u32) -> Values {
    Values::Text { least, most }
}

fn customers(version: Version, rows: u64) -> Table {
    let sparse =
        |column: Column, nulls| if version > Version::V611 { column.sparse(nulls) } else { column.nullable(nulls) };
    let filtered = version > Version::V611;
    Table {
        name: "customers".to_owned(),
        columns: vec![
            Column::new("customer_id", SqlType::INT, serial(1)),
            Column::new("code", SqlType::char(8), Values::Scattered { per: 1 }),
            Column::new("name", SqlType::nvarchar(60), text(6, 40)),
            Column::new("city", SqlType::varchar(40), text(4, 20)).nullable(5),
            sparse(Column::new("discount", SqlType::INT, Values::Uniform { low: 1, high: 40 }), 90),
            sparse(Column::new("vat_number", SqlType::varchar(20), text(8, 14)), 95),
            Column::new("credit", SqlType::MONEY, Values::Uniform { low: 0, high: 50_000_000 }),
            Column::new("active", SqlType::BIT, Values::Uniform { low: 0, high: 1 }).default(1),
        ],
        clustered: Some(Index::on("pk_customers", &[0]).primary_key()),
        indexes: if filtered {
            vec![
                Index::on("ux_customers_code", &[1]).unique(),
                Index::on("ix_customers_discount", &[4]).filtered(Filter::IsNotNull(4)),
            ]
        } else {
            vec![Index::on("ux_customers_code", &[1]).unique()]
        },
        rows,
        ghost_every: 97,
        checks: vec![("ck_customers_discount".to_owned(), Filter::AtLeast(4, 1))],
        ..Table::default()
    }
    .with_sortable_filter(rows)
}

impl Table {
    /// Removes the filtered indexes if the table has too many rows to sort. The lab can find the order of the rows in a
    /// filtered index only by sorting them.
    fn with_sortable_filter(mut self, rows: u64) -> Self {
        if rows > 1 << 20 {
            self.indexes.retain(|index| index.filter.is_none());
        }
        self
    }
}

fn products(rows: u64) -> Table {
    Table {
        name: "products".to_owned(),
        columns: vec![
            Column::new("product_id", SqlType::INT, serial(1)),
            Column::new("sku", SqlType::nchar(10), Values::Scattered { per: 1 }),
            Column::new("title", SqlType::nvarchar(80), text(8, 60)),
            Column::new("price", SqlType::decimal(12, 2), Values::Uniform { low: 100, high: 900_000 }),
            Column::new("notes", SqlType::TEXT, text(20, 9_000)).nullable(90),
            Column::new("weight", SqlType::FLOAT, Values::Uniform { low: 1, high: 5_000 }).nullable(20),
        ],
        indexes: vec![
            Index::on("ux_products_sku", &[1]).unique(),
            Index::on("ix_products_price", &[3]).including(&[0]),
        ],
        rows,
        ghost_every: 211,
        moved_every: 37,
        hole_every: 53,
        ..Table::default()
    }
}

fn orders_table(rows: u64, customers: u64) -> Table {
    let per_customer = rows.div_ceil(customers).max(1);
    let mut by_date = Index::on("ix_orders_ordered_at", &[2]).including(&[3]);
    by_date.keys[0].1 = true;
    Table {
        name: "orders".to_owned(),
        columns: vec![
            Column::new("order_id", SqlType::BIGINT, serial(1)),
            Column::new("customer_id", SqlType::INT, Values::Scattered { per: per_customer }),
            Column::new("ordered_at", SqlType::DATETIME, Values::Grouped { start: 0, per: 3 }),
            Column::new("status", SqlType::TINYINT, Values::Uniform { low: 0, high: 6 }).default(0),
            Column::new("total", SqlType::decimal(19, 4), Values::Uniform { low: 0, high: 90_000_000 }),
            Column::new("reference", SqlType::varchar(30), text(0, 24)).nullable(30),
        ],
        clustered: Some(Index::on("pk_orders", &[0]).primary_key()),
        indexes: vec![Index::on("ix_orders_customer", &[1]).including(&[4]), by_date],
        rows,
        ..Table::default()
    }
}

fn order_lines(rows: u64, products: u64) -> Table {
    let per_product = rows.div_ceil(products).max(1);
    let long = rows > 1 << 20;
    Table {
        name: "order_lines".to_owned(),
        columns: vec![
            Column::new("order_id", SqlType::BIGINT, Values::Grouped { start: 1, per: LINES }),
            Column::new("line_number", SqlType::INT, Values::Within { start: 1, per: LINES }),
            Column::new("product_id", SqlType::INT, Values::Scattered { per: per_product.min(1000) }),
            Column::new("quantity", SqlType::INT, Values::Uniform { low: 1, high: 50 }),
            Column::new("unit_price", SqlType::INT, Values::Uniform { low: 100, high: 90_000 }),
            Column::computed("amount", Expression::Product(3, 4), true),
            Column::new("tracking", SqlType::BIGINT, Values::Scattered { per: 1 }),
            Column::new("remark", SqlType::varchar(50), text(10, 34)),
        ],
        clustered: Some(Index::on("pk_order_lines", &[0, 1]).primary_key()),
        indexes: vec![
            if long { Index::on("ix_order_lines_product", &[2, 5]) } else { Index::on("ix_order_lines_amount", &[5]) },
            Index::on("ux_order_lines_tracking", &[6]).unique(),
        ],
        checks: vec![("ck_order_lines_quantity".to_owned(), Filter::AtLeast(3, 1))],
        foreign_keys: vec![ForeignKey {
            name: "fk_order_lines_orders".to_owned(),
            column: 0,
            table: "orders".to_owned(),
            key: 0,
        }],
        rows,
        ..Table::default()
    }
}

fn documents(rows: u64) -> Table {
    Table {
        name: "documents".to_owned(),
        columns: vec![
            Column::new("document_id", SqlType::UNIQUEIDENTIFIER, Values::Scattered { per: 1 }),
            Column::new("body", SqlType::NVARCHAR_MAX, text(10, 30_000)),
            Column::new("details", SqlType::XML, Values::Bytes { least: 40, most: 12_000 }).nullable(30),
            Column::new("scan", SqlType::VARBINARY_MAX, Values::Bytes { least: 0, most: 90_000 }).nullable(60),
            Column::new("summary", SqlType::varchar(6000), text(100, 5_000)),
            Column::new("abstract", SqlType::varchar(6000), text(100, 5_000)),
        ],
        clustered: Some(Index::on("pk_documents", &[0]).primary_key()),
        rows,
        ghost_every: 19,
        ..Table::default()
    }
}

fn events(version: Version, rows: u64) -> Table {
    let any = || Values::Uniform { low: -20_000, high: 20_000 };
    let since_2008 = [
        Column::new("on_day", SqlType::DATE, any()).nullable(10),
        Column::new("at_time", SqlType::time(3), Values::Uniform { low: 0, high: 86_399 }),
        Column::new("at_moment", SqlType::datetime2(7), any()).nullable(10),
        Column::new("at_offset", SqlType::datetimeoffset(2), any()),
    ];
    let mut columns = vec![
        Column::new("event_id", SqlType::INT, serial(1)),
        Column::new("flag_a", SqlType::BIT, any()),
        Column::new("small", SqlType::SMALLINT, any()).nullable(10),
        Column::new("flag_b", SqlType::BIT, any()).nullable(10),
        Column::new("ratio", SqlType::REAL, any()),
        Column::new("fee", SqlType::SMALLMONEY, any()),
        Column::new("seen_at", SqlType::SMALLDATETIME, Values::Uniform { low: 0, high: 900_000 }),
        Column::new("stamp", SqlType::ROWVERSION, serial(2001)),
        Column::new("code", SqlType::binary(6), any()),
        Column::new("payload", SqlType::varbinary(60), Values::Bytes { least: 0, most: 50 }).nullable(10),
        Column::new("anything", SqlType::SQL_VARIANT, any()).nullable(10),
        Column::new("picture", SqlType::IMAGE, Values::Bytes { least: 1, most: 300 }).nullable(80),
        Column::new("remark", SqlType::NTEXT, text(1, 200)).nullable(80),
        Column::new("large", SqlType::decimal(30, 6), any()),
    ];
    if version > Version::V611 {
        columns.extend(since_2008);
    }
    Table { name: "events".to_owned(), columns, rows, ghost_every: 5, ..Table::default() }
}

fn visits(rows: u64) -> Table {
    Table {
        name: "visits".to_owned(),
        columns: vec![
            Column::new("customer_id", SqlType::INT, Values::Uniform { low: 1, high: 80 }),
            Column::new("page", SqlType::varchar(40), text(3, 30)),
            Column::new("seconds", SqlType::INT, Values::Uniform { low: 0, high: 600 }).nullable(15),
        ],
        clustered: Some(Index::on("cx_visits", &[0])),
        indexes: vec![Index::on("ix_visits_seconds", &[2])],
        rows,
        ghost_every: 31,
        versioned_every: 13,
        fragmented: true,
        ..Table::default()
    }
}

fn price_history(rows: u64) -> Table {
    Table {
        name: "price_history".to_owned(),
        columns: vec![
            Column::new("product_id", SqlType::INT, Values::Grouped { start: 1, per: 25 }),
            Column::new("valid_from", SqlType::DATE, Values::Within { start: 0, per: 25 }),
            Column::new("price", SqlType::decimal(12, 2), Values::Uniform { low: 100, high: 900_000 }),
            Column::new("currency", SqlType::char(3), Values::Uniform { low: 13_000, high: 13_002 }),
            Column::new("reason", SqlType::nvarchar(60), text(0, 30)).nullable(40),
            Column::new("changed_by", SqlType::varchar(20), Values::Uniform { low: 50_000_000, high: 50_000_005 }),
        ],
        indexes: vec![Index::on("ix_price_history_product", &[0, 1]).including(&[2])],
        rows,
        ghost_every: 101,
        compression: Compression::Page,
        ..Table::default()
    }
}
