//! The checks that CHECKDB makes only WITH EXTENDED_LOGICAL_CHECKS: rows of XML indexes and indexed views, which are
//! derived from other rows, are compared with those rows (messages 8907, 8908). The structure and the columns of these
//! indexes are always checked, as for any table.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use catalog::{Database, Index, IndexType, Rowset, RowsetColumn, Stored, column_status};
use findings::registry::{self, limits};
use findings::{Coverage, Finding, Place};
use format::record::Record;

use crate::basis::ledger::FindingCollector;
use crate::basis::tallies::Tallies;
use crate::basis::units::UnitIndex;
use crate::page::forwarding::is_live;
use crate::page::rowsets::in_row_unit;
use crate::sweep::context::Context;
use crate::sweep::damage::{partly_known_units, why_partly_known};
use crate::sweep::pinpoint;
use crate::sweep::unmatched::{Bounds, Side, unmatched};
use crate::values::Column;

/// The subject of the notes that say which rows are not compared.
const WHAT: &str = limits::EXTENDED_KEYS.what;
/// Length of the start of binary XML: signature, version and code page (docs/format/other-features.md#xml). A document
/// that has only these bytes has no nodes.
const XML_HEADER_BYTES: usize = 5;
/// Prefix of the names of the internal tables of XML indexes. The IDs of the table and of the index follow.
const NODES_TABLE: &str = "xml_index_nodes_";

/// Makes the extended checks, after the sweep.
pub(crate) fn reckon(context: &Context<'_>, swept: &Tallies, findings: &mut FindingCollector, coverage: &mut Coverage) {
    if !context.options.extended_logical_checks {
        return;
    }
    let database = context.database;
    let name =
        |index: &Index| Place::of(index.object_id, format!("{}.{}", database.object_name(index.object_id), index.name));
    let mut nodes = None;
    let mut damaged = None;
    for index in database.indexes.values() {
        let is_view = database.objects.get(&index.object_id).is_some_and(|object| object.type_code == "V");
        match index.index_type {
            IndexType::Xml => match Documents::of(database, index, nodes.get_or_insert_with(|| nodes_tables(database)))
            {
                Some(documents) if documents.is_in_scope(context) => {
                    coverage.note(&limits::EXTENDED_XML_CONTENT, name(index), 0);
                    let damaged = damaged.get_or_insert_with(|| partly_known_units(context, swept, findings));
                    let units = [documents.base, documents.nodes];
                    if units.iter().any(|unit| damaged.contains(unit)) {
                        coverage.note_as(WHAT, why_partly_known(context, swept, &units), name(index), 0);
                    } else {
                        documents.compare(context, swept, findings, coverage);
                    }
                }
                Some(_) => {}
                None => coverage.note(&limits::EXTENDED_XML_FORM, name(index), 0),
            },
            IndexType::Spatial => coverage.note(&limits::EXTENDED_SPATIAL, name(index), 0),
            IndexType::Clustered if is_view => {
                coverage.note(&limits::EXTENDED_VIEW, name(index), 0);
            }
            _ => {}
        }
    }
}

/// The internal tables of XML indexes, by the ID of the indexed table and the name of the internal table.
fn nodes_tables(database: &Database) -> BTreeMap<(i32, &str), i32> {
    let objects = database.objects.values().filter(|object| object.name.starts_with(NODES_TABLE));
    // If several tables have the same name, the table with the lowest ID is used.
    objects.rev().map(|object| ((object.parent_id, object.name.as_str()), object.id)).collect()
}

/// The document that a row belongs to, as a hash of the document's key. `None` if the row has no document, or if it is
/// a node but not the first node of a document; `Err` if the document is unknown.
type Named = Result<Option<(u64, u64)>, ()>;

/// A primary XML index. Each document of the table must have nodes in the internal table. The first node of a document
/// has an empty ID (docs/format/other-features.md#xml).
struct Documents {
    object_id: i32,
    base: UnitIndex,
    nodes: UnitIndex,
    document: Column,
    /// The clustering key of the table.
    key: Vec<Column>,
    /// The column with the ORDPATH of a node.
    id: Column,
    /// The columns of the nodes table that repeat the clustering key.
    node_key: Vec<Column>,
}

impl Documents {
    fn of(database: &Database, index: &Index, nodes_tables: &BTreeMap<(i32, &str), i32>) -> Option<Self> {
        let name = format!("{NODES_TABLE}{}_{}", index.object_id, index.index_id);
        let object_id = *nodes_tables.get(&(index.object_id, name.as_str()))?;
        let (base, nodes) = (clustered(database, index.object_id)?, clustered(database, object_id)?);
        let document = database.index_columns.get(&(index.object_id, index.index_id))?.first()?.column_id;
        let mut key: Vec<&RowsetColumn> = base.layout.columns.iter().filter(|column| column.key_ordinal > 0).collect();
        key.sort_by_key(|column| column.key_ordinal);
        let named = |name: &str| {
            let column = database.columns.get(&object_id)?.iter().find(|column| column.name == name)?;
            Some(Column::of_table(nodes.layout.column(column.id)?))
        };
        let node_key = (1..=key.len()).map(|number| named(&format!("pk{number}"))).collect::<Option<Vec<_>>>()?;
        let is_plain = |(own, copy): (&&RowsetColumn, &Column)| {
            own.status & column_status::UNIQUIFIER == 0 && own.info == copy.column.info
        };
        let documents = Self {
            object_id,
            base: in_row_unit(database, base)?,
            nodes: in_row_unit(database, nodes)?,
            document: Column::of_table(base.layout.column(document)?),
            id: named("id")?,
            key: key.iter().map(|column| Column::of_table(column)).collect(),
            node_key,
        };
        let is_known = !documents.key.is_empty() && key.iter().zip(&documents.node_key).all(is_plain);
        is_known.then_some(documents)
    }

    fn is_in_scope(&self, context: &Context<'_>) -> bool {
        [self.base, self.nodes].iter().all(|unit| context.units.get(*unit).is_some_and(|unit| context.in_scope(unit)))
    }

    /// The document of a row of the base table, or of a first node in the nodes table.
    fn document(&self, context: &Context<'_>, unit: UnitIndex, record: &Record<'_>) -> Named {
        let (test, key) = if unit == self.base { (&self.document, &self.key) } else { (&self.id, &self.node_key) };
        match (unit == self.base, test.value(record)) {
            (true, Stored::Null) => return Ok(None),
            // It is unknown whether the index has a row for a document that has no nodes.
            (true, Stored::Plain(xml)) if xml.len() == XML_HEADER_BYTES => return Err(()),
            (true, Stored::Absent) | (false, Stored::Complex(_) | Stored::Absent | Stored::Null) => return Err(()),
            (false, Stored::Plain(id)) if !id.is_empty() => return Ok(None),
            _ => {}
        }
        let mut hasher = context.hash.hasher();
        for column in key {
            match column.value(record) {
                Stored::Plain(bytes) => hasher.add_bytes(bytes),
                Stored::Null => hasher.add_null(),
                Stored::Absent | Stored::Complex(_) => return Err(()),
            }
        }
        Ok(Some(hasher.finish()))
    }

    fn compare(
        &self,
        context: &Context<'_>,
        swept: &Tallies,
        findings: &mut FindingCollector,
        coverage: &mut Coverage,
    ) {
        let units = BTreeSet::from([self.base, self.nodes]);
        let unknown = Cell::new(0);
        let rows = [self.base, self.nodes].into_iter().filter_map(|unit| swept.units.get(unit as usize));
        let bounds = Bounds::within(context.bytes_for_facts(), rows.map(|tally| tally.rows).sum(), 1);
        let compared = unmatched(bounds, |visit| {
            unknown.set(0u64);
            pinpoint::each_row(context, &units, pinpoint::PageRange::ALL, |unit, at, record| {
                if !is_live(record) {
                    return;
                }
                match self.document(context, unit, record) {
                    Ok(Some(hash)) => visit(if unit == self.base { Side::Table } else { Side::Index }, at, hash),
                    Ok(None) => {}
                    Err(()) => unknown.set(unknown.get() + 1),
                }
            })
        });
        let name = || Place::of(self.object_id, context.database.object_name(self.object_id));
        let Ok(unmatched) = compared else { return coverage.note_as(WHAT, &limits::PAGES_UNREADABLE, name(), 1) };
        if unknown.get() > 0 {
            return coverage.note(&limits::EXTENDED_KEYS, name(), unknown.get());
        }
        let [missing, surplus] = unmatched.rows;
        let owner = context.units.get(self.nodes).map(|unit| unit.owner);
        for (check, is_found) in
            [(&registry::VIEW_SURPLUS, !surplus.is_empty()), (&registry::VIEW_MISSING, !missing.is_empty())]
        {
            if let (true, Some(owner)) = (is_found, owner) {
                findings.push(
                    Finding::new(check).owner(owner).text_value("name", context.database.object_name(self.object_id)),
                );
            }
        }
    }
}

fn clustered(database: &Database, object_id: i32) -> Option<&Rowset> {
    let mut found = database.rowsets_of(object_id).filter(|rowset| rowset.index_id == 1);
    // In a partitioned table, each partition has its own nodes, so only a table with one partition is compared.
    found.next().filter(|_| found.next().is_none())
}
