//! The parts of the page as JSON.

use format::fields::{FieldInstance, Structure, hex};
use format::page::PAGE_BYTES;
use format::protection::{Protection, ProtectionFault, stored_word, verify};
use format::{PageBytes, PageId};
use serde_json::{Value, json};

use super::allocation::Allocation;
use super::maps::{file_of, runs_of};
use super::parsed::Parsed;
use super::protection::torn_sectors;
use super::records::RecordView;

/// The fields of a structure that begins at `start`.
pub(super) fn fields(parsed: &Parsed, structure: Structure, start: usize) -> Value {
    parsed.fields_of(structure).map(|found| field(parsed, found, start)).collect()
}

/// A field of what begins at `start`.
fn field(parsed: &Parsed, found: &FieldInstance, start: usize) -> Value {
    let mut object = json!({
        "structure": found.field.structure.name(),
        "name": found.field.name,
        "label": found.field.label,
        "at": found.bytes.start,
        "offset": found.bytes.start.saturating_sub(start),
        "length": found.bytes.len(),
    });
    if let (Some(index), Some(map)) = (found.index, object.as_object_mut()) {
        map.insert("index".to_owned(), json!(index));
    }
    if let Some(map) = object.as_object_mut() {
        // Whole maps are told as runs.
        if found.bytes.len() < 4096 {
            map.insert("bytes".to_owned(), json!(hex(parsed.slice(&found.bytes), PAGE_BYTES)));
        }
        map.insert("value".to_owned(), json!(found.render(&parsed.page)));
    }
    object
}

/// A record, its fields and its columns.
pub(super) fn record(parsed: &Parsed, record: &RecordView<'_>) -> Value {
    let start = record.space.bytes.start;
    json!({
        "slot": record.space.slot,
        "at": start,
        "space": record.space.bytes.len(),
        "length": record.length,
        "kind": record.kind,
        "fault": record.fault.map(|fault| json!({
            "test": fault.test.text(), "value": fault.value, "against": fault.against,
        })),
        "fields": record.fields.iter().map(|found| field(parsed, found, start)).collect::<Vec<_>>(),
        "undescribed": record.undescribed().into_iter().map(|gap| json!({
            "at": gap.start, "offset": gap.start - start, "bytes": hex(parsed.slice(&gap), PAGE_BYTES),
        })).collect::<Vec<_>>(),
        "columns": record.columns.iter().map(|column| json!({
            "name": column.name, "type": column.type_name, "offset": column.bytes.start,
            "length": column.bytes.len(), "value": column.value,
        })).collect::<Vec<_>>(),
    })
}

/// The runs of an allocation page, none for other pages.
pub(super) fn map(parsed: &Parsed, at: PageId) -> Value {
    let (_, runs) = runs_of(parsed, at);
    let file = file_of(parsed, at);
    let runs = runs.into_iter().map(|run| {
        json!({
            "file": file, "first": run.first, "last": run.last, "count": run.count, "state": run.state,
        })
    });
    runs.collect()
}

/// What the allocation maps say of the page.
pub(super) fn allocation(allocation: &Allocation) -> Value {
    let states = allocation
        .states()
        .into_iter()
        .map(|(name, map, state)| json!({ "map": name, "page": map.to_string(), "state": state }));
    json!({ "owner": allocation.owner, "maps": states.collect::<Vec<_>>() })
}

/// Whether the page is as it was written.
pub(super) fn protection(bytes: &PageBytes) -> Value {
    let hex = |word: u32| format!("0x{word:08X}");
    match verify(bytes) {
        Ok(Protection::None) => json!({ "kind": "none", "ok": null }),
        Ok(Protection::Checksum) => json!({ "kind": "checksum", "ok": true, "stored": hex(stored_word(bytes)) }),
        Ok(Protection::TornBits) => json!({ "kind": "torn_bits", "ok": true, "stored": hex(stored_word(bytes)) }),
        Err(ProtectionFault::Checksum { stored, computed }) => {
            json!({ "kind": "checksum", "ok": false, "stored": hex(stored), "computed": hex(computed) })
        }
        Err(ProtectionFault::Torn { stored, actual }) => json!({
            "kind": "torn_bits", "ok": false, "stored": hex(stored), "actual": hex(actual),
            "sectors": torn_sectors(stored, actual),
        }),
    }
}
