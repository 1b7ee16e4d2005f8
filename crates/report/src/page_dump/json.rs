//! The parts of the page as JSON.

use format::fields::Structure;
use format::instances::FieldInstance;
use format::page::PAGE_BYTES;
use format::protection::{Protection, ProtectionFault, stored_word, verify};
use format::render::hex;
use format::{PageBytes, PageId};

use super::allocation::Allocation;
use super::maps::{file_of, runs_of};
use super::parsed::Parsed;
use super::protection::torn_sectors;
use super::records::RecordView;
use crate::columns::ColumnValue;
use crate::json::page as lines;

/// The fields of a structure that begins at `start`.
pub(super) fn fields(parsed: &Parsed, structure: Structure, start: usize) -> Vec<lines::Field> {
    parsed.fields_of(structure).map(|found| field(parsed, found, start)).collect()
}

/// A field of a structure that begins at `start`.
fn field(parsed: &Parsed, found: &FieldInstance, start: usize) -> lines::Field {
    // The bytes of a whole allocation map are left out, because `map` in the JSON shows the same map as runs.
    let is_map = found.bytes.len() >= 4096;
    lines::Field {
        structure: found.field.structure.name(),
        name: found.field.name,
        label: found.field.label,
        at: found.bytes.start,
        offset: found.bytes.start.saturating_sub(start),
        length: found.bytes.len(),
        index: found.index,
        bytes: (!is_map).then(|| hex(parsed.slice(&found.bytes), PAGE_BYTES)),
        value: found.render(&parsed.page),
    }
}

/// A record, its fields and its columns.
pub(super) fn record(parsed: &Parsed, record: RecordView<'_>) -> lines::Record {
    let start = record.space.bytes.start;
    let undescribed = record.undescribed().into_iter().map(|gap| lines::Undescribed {
        at: gap.start,
        offset: gap.start - start,
        bytes: hex(parsed.slice(&gap), PAGE_BYTES),
    });
    let column = |column: ColumnValue| lines::Column {
        name: column.name,
        type_name: column.type_name,
        offset: column.bytes.start,
        length: column.bytes.len(),
        value: column.value,
    };
    lines::Record {
        slot: record.space.slot,
        at: start,
        space: record.space.bytes.len(),
        length: record.length,
        fault: record.fault.map(|fault| lines::Fault {
            test: fault.test.text(),
            value: fault.value,
            against: fault.against,
        }),
        fields: record.fields.iter().map(|found| field(parsed, found, start)).collect(),
        undescribed: undescribed.collect(),
        kind: record.kind,
        columns: record.columns.into_iter().map(column).collect(),
    }
}

/// The runs of an allocation page; empty for pages of other types.
pub(super) fn map(parsed: &Parsed, at: PageId) -> Vec<lines::MapRun> {
    let (_, runs) = runs_of(parsed, at);
    let file = file_of(parsed, at);
    let runs = runs.into_iter().map(|run| lines::MapRun {
        file,
        first: run.first,
        last: run.last,
        count: run.count,
        state: run.state,
    });
    runs.collect()
}

/// The states of the page in the allocation maps.
pub(super) fn allocation(allocation: &Allocation) -> lines::Allocation<'_> {
    let states = allocation.states().into_iter();
    let maps = states.map(|(map, page, state)| lines::MapState { map, page: page.to_string(), state });
    lines::Allocation { owner: allocation.owner.as_deref(), maps: maps.collect() }
}

/// The protection of the page, and whether the page is intact.
pub(super) fn protection(bytes: &PageBytes) -> lines::Protection {
    let hex = |word: u32| Some(format!("0x{word:08X}"));
    let right = |kind| lines::Protection {
        kind,
        ok: Some(true),
        stored: hex(stored_word(bytes)),
        ..lines::Protection::default()
    };
    let wrong =
        |kind, stored| lines::Protection { kind, ok: Some(false), stored: hex(stored), ..lines::Protection::default() };
    match verify(bytes) {
        Ok(Protection::None) => lines::Protection { kind: "none", ..lines::Protection::default() },
        Ok(Protection::Checksum) => right("checksum"),
        Ok(Protection::TornBits) => right("torn_bits"),
        Err(ProtectionFault::Checksum { stored, computed }) => {
            lines::Protection { computed: hex(computed), ..wrong("checksum", stored) }
        }
        Err(ProtectionFault::Torn { stored, actual }) => lines::Protection {
            actual: hex(actual),
            sectors: Some(torn_sectors(stored, actual)),
            ..wrong("torn_bits", stored)
        },
    }
}
