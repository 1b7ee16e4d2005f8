//! Adds catalog rows for rowsets, their columns and allocation units to sysrowsets, sysrscols and sysallocunits, or to
//! the corresponding tables of SQL Server 2005.

use super::Field::{Bytes, Number, Page};
use super::rows::SystemRows;
use super::{Catalogue, base};
use crate::build::{BuiltRowset, unit_kind};
use crate::layout::{PhysicalColumn, Source};
use crate::sample::Sample;
use crate::types::Storage;
use crate::version::Version;

/// Bit of sysrscols.status: the column was dropped. The constants from `DESCENDING` to `HAS_DEFAULT` are further bits
/// of sysrscols.status. The constants that end in `_2005` are bits of syshobtcolumns.status in SQL Server 2005.
const DROPPED: i64 = 2;
const DESCENDING: i64 = 8;
const UNIQUIFIER: i64 = 0x10;
const NOT_NULL: i64 = 0x80;
const SPARSE: i64 = 0x100;
const HAS_DEFAULT: i64 = 0x200;
const UNIQUIFIER_2005: i64 = 0x02;
const NOT_NULL_2005: i64 = 0x20;

impl Catalogue<'_> {
    /// Adds the rows that describe the columns of a rowset.
    pub(super) fn describe_columns(&mut self, rowset: &BuiltRowset) {
        let listed = rowset.layout.columns.iter().filter(|column| column.source != Source::SparseVector);
        for (order, column) in listed.enumerate() {
            if self.description.version == Version::V611 {
                self.describe_column_2005(rowset, order as i64 + 1, column);
            } else {
                self.describe_column(rowset, order as i64 + 1, column);
            }
        }
    }

    fn describe_column(&mut self, rowset: &BuiltRowset, order: i64, column: &PhysicalColumn) {
        let flag = |set: bool, bit: i64| if set { bit } else { 0 };
        let status = flag(column.descending, DESCENDING)
            | flag(column.source == Source::Uniquifier, UNIQUIFIER)
            | flag(column.not_null, NOT_NULL)
            | flag(column.sparse, SPARSE)
            | flag(column.dropped, DROPPED)
            | flag(column.default.is_some(), HAS_DEFAULT);
        let halves = |low: u16, high: u16| i64::from((u32::from(low) | u32::from(high) << 16) as i32);
        let (leaf, inner) = (column.leaf, column.inner);
        self.add(
            base::SYSRSCOLS,
            &[
                ("rsid", Number(rowset.id as i64)),
                ("rscolid", Number(i64::from(column.id))),
                ("hbcolid", Number(order)),
                ("ti", Number(i64::from(column.ty.type_info()))),
                ("cid", Number(i64::from(column.collation))),
                ("ordkey", Number(i64::from(column.key_ordinal))),
                ("maxinrowlen", Number(i64::from(column.max_in_row))),
                ("status", Number(status)),
                ("offset", Number(halves(leaf.offset as u16, inner.offset as u16))),
                ("nullbit", Number(halves(leaf.null_bit, inner.null_bit))),
                ("bitpos", Number(i64::from(leaf.bit) | i64::from(inner.bit) << 8)),
            ],
        );
        if let Some(default) = column.default {
            self.keep_default(rowset.id, order, column, default);
        }
    }

    /// Adds the default of a column as a sql_variant. In a row that was written before the column was added, the column
    /// has this default as its value.
    fn keep_default(&mut self, rowset: u64, order: i64, column: &PhysicalColumn, default: i32) {
        let mut bytes = Vec::new();
        column.ty.encode_number(default.into(), &mut bytes);
        let value = Sample::variant(column.ty, column.collation, Sample::made(bytes, String::new()));
        let bytes = value.bytes.unwrap_or_default();
        let place = [("id", Number(rowset as i64)), ("subid", Number(order))];
        let fields: Vec<_> = place.into_iter().chain([("valclass", Number(1)), ("value", Bytes(&bytes))]).collect();
        self.add(base::SYSSEOBJVALUES, &fields);
    }

    fn describe_column_2005(&mut self, rowset: &BuiltRowset, order: i64, column: &PhysicalColumn) {
        let flag = |set: bool, bit: i64| if set { bit } else { 0 };
        let max = column.ty.storage() == Storage::Max;
        self.add(
            base::SYSROWSETCOLUMNS,
            &[
                ("rowsetid", Number(rowset.id as i64)),
                ("rowsetcolid", Number(i64::from(column.id))),
                ("hobtcolid", Number(order)),
                ("maxinrowlen", Number(if max { 8000 } else { i64::from(column.ty.length) })),
            ],
        );
        let status = flag(column.source == Source::Uniquifier, UNIQUIFIER_2005) | flag(column.not_null, NOT_NULL_2005);
        let (leaf, inner) = (column.leaf, column.inner);
        self.add(
            base::SYSHOBTCOLUMNS,
            &[
                ("hobtid", Number(rowset.id as i64)),
                ("hobtcolumnid", Number(order)),
                ("status", Number(status)),
                ("ordkey", Number(i64::from(column.key_ordinal))),
                ("xtype", Number(i64::from(column.ty.xtype))),
                ("length", Number(if max { -1 } else { i64::from(column.ty.length) })),
                ("prec", Number(i64::from(column.ty.precision))),
                ("scale", Number(i64::from(column.ty.scale))),
                ("collationid", Number(i64::from(column.collation as i32))),
                ("offsetleaf", Number(i64::from(leaf.offset))),
                ("offsetint", Number(i64::from(inner.offset))),
                ("bitposleaf", Number(i64::from(leaf.bit))),
                ("bitposint", Number(i64::from(inner.bit))),
                ("nullbitleaf", Number(i64::from(leaf.null_bit))),
                ("nullbitint", Number(i64::from(inner.null_bit))),
            ],
        );
    }

    /// Computes the row count of each base table, then adds the catalog row of the table's rowset, which stores this
    /// count. Before the call, all base tables except sysrowsets, syshobts and sysallocunits must have all their rows.
    pub(super) fn count_rows(&mut self, system: &mut [BuiltRowset]) {
        let units: usize = system.iter().map(|rowset| rowset.units.len()).sum();
        for at in 0..system.len() {
            let own = match system[at].object {
                base::SYSROWSETS | base::SYSHOBTS => system.len(),
                base::SYSALLOCUNITS => units,
                _ => 0,
            };
            system[at].rows = (self.row_count(system[at].object) + own) as u64;
        }
        for rowset in system.iter() {
            self.describe_shape(rowset);
        }
    }

    /// The current number of rows in a base table.
    pub(super) fn row_count(&self, object: i32) -> usize {
        self.rows.get(&object).map_or(0, SystemRows::len)
    }

    /// Adds the row that describes a rowset.
    pub(super) fn describe_shape(&mut self, rowset: &BuiltRowset) {
        let layout = &rowset.layout;
        let shape = [
            ("fillfact", Number(i64::from(rowset.fill_factor))),
            ("maxnullbit", Number(i64::from(layout.null_bits()))),
            ("maxleaf", Number(i64::from(layout.longest_leaf()))),
            ("maxint", Number(i64::from(layout.longest_inner().min(32_767)))),
            ("minleaf", Number(i64::from(layout.leaf_fixed))),
            ("minint", Number(if layout.longest_inner() == 0 { 0 } else { i64::from(layout.inner_fixed) })),
        ];
        let head = [
            ("rowsetid", Number(rowset.id as i64)),
            ("ownertype", Number(1)),
            ("idmajor", Number(i64::from(rowset.object))),
            ("idminor", Number(i64::from(rowset.index))),
            ("numpart", Number(i64::from(rowset.partition))),
            ("status", Number(rowset.status)),
            ("rcrows", Number(rowset.rows as i64)),
            ("cmprlevel", Number(i64::from(rowset.compression))),
            ("dbfragid", Number(1)),
        ];
        let is_scoped = self.description.version >= Version::V904 && !self.is_taken(rowset.object);
        let scope = is_scoped.then_some(("scope_id", Number(1)));
        let fields: Vec<_> = head.into_iter().chain(shape).chain(scope).collect();
        self.add(base::SYSROWSETS, &fields);
        let hobt: Vec<_> = fields
            .into_iter()
            .filter(|(name, _)| *name != "rowsetid" && *name != "status")
            .chain([("hobtid", Number(rowset.id as i64))])
            .collect();
        self.add(base::SYSHOBTS, &hobt);
    }

    /// For SQL Server 2005: adds the rows that describe the owners of a rowset's allocation units.
    pub(super) fn describe_owners(&mut self, rowset: &BuiltRowset) {
        for (kind, unit) in &rowset.units {
            let class = match *kind {
                unit_kind::LOB => 0,
                unit_kind::OVERFLOW => 2,
                _ => 1,
            };
            let owner = [("depid", Number(rowset.id as i64)), ("indepid", Number(unit.id.0 as i64))];
            let fields: Vec<_> = [("class", Number(class))].into_iter().chain(owner).collect();
            self.add(base::SYSSEREFS, &fields);
        }
    }

    /// Adds the rows that describe the allocation units of a rowset.
    pub(super) fn describe_units(&mut self, rowset: &BuiltRowset) {
        for (kind, unit) in &rowset.units {
            self.add(
                base::SYSALLOCUNITS,
                &[
                    ("auid", Number(unit.id.0 as i64)),
                    ("type", Number(i64::from(*kind))),
                    ("ownerid", Number(rowset.id as i64)),
                    ("fgid", Number(i64::from(unit.group))),
                    ("pgfirst", Page(unit.first)),
                    ("pgroot", Page(unit.root)),
                    ("pgfirstiam", Page(unit.first_iam())),
                    ("pcused", Number(unit.used as i64)),
                    ("pcdata", Number(unit.data as i64)),
                    ("pcreserved", Number(unit.reserved as i64)),
                    ("dbfragid", Number(1)),
                ],
            );
        }
    }
}
