//! Tests that the tables are consistent, and agree with the typed views.

use std::mem::offset_of;

use super::*;
use crate::page::{HEADER_BYTES, PAGE_BYTES, PageHeader};

fn row(structure: Structure, name: &str) -> &'static Field {
    structure.fields().iter().find(|field| field.name == name).unwrap_or_else(|| panic!("{name} in {structure:?}"))
}

/// The fields of a structure that have a constant offset and width.
fn plain_places(structure: Structure) -> Vec<(usize, usize, &'static str)> {
    let mut places = Vec::new();
    for field in structure.fields() {
        let bytes = match field.width {
            Width::Bytes(bytes) => bytes.into(),
            Width::Bits(bits) => bits as usize / 8,
            Width::Varies => PAGE_BYTES,
        };
        match field.place {
            Place::At(at) => places.push((at.into(), bytes, field.name)),
            Place::Each { first, stride, count } => {
                assert!(bytes <= stride.into(), "{} overlaps itself", field.name);
                let times = if let Count::Times(times) = count { times } else { 3 };
                places.extend((0..times).map(|n| (usize::from(first + n * stride), bytes, field.name)));
            }
            _ => {}
        }
    }
    places.sort_unstable();
    places
}

#[test]
fn rows_are_complete_and_their_names_unique() {
    for structure in Structure::ALL {
        assert!(!structure.fields().is_empty());
        for (number, field) in structure.fields().iter().enumerate() {
            assert_eq!(field.structure, structure);
            assert!(![field.name, field.label, field.meaning, field.reference].contains(&""), "{field:?}");
            assert!(structure.fields().iter().skip(number + 1).all(|other| other.name != field.name), "{field:?}");
        }
    }
}

#[test]
fn fields_of_a_structure_do_not_overlap() {
    for structure in Structure::ALL {
        for pair in plain_places(structure).windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{structure:?}: {} and {}", pair[0].2, pair[1].2);
        }
        let columns: Vec<u16> = structure
            .fields()
            .iter()
            .filter_map(|field| if let Place::Column(position) = field.place { Some(position) } else { None })
            .collect();
        assert!(columns.is_sorted_by(|one, next| one < next), "{structure:?}");
    }
}

#[test]
fn the_page_header_is_covered_byte_by_byte() {
    let mut end = 0;
    for (at, bytes, name) in plain_places(Structure::PageHeader) {
        assert_eq!(at, end, "{name}");
        end += bytes;
    }
    assert_eq!(end, HEADER_BYTES);
}

#[test]
fn the_page_header_agrees_with_the_struct() {
    for (name, offset) in [
        ("m_headerVersion", offset_of!(PageHeader, header_version)),
        ("m_type", offset_of!(PageHeader, page_type)),
        ("m_typeFlagBits", offset_of!(PageHeader, type_flags)),
        ("m_level", offset_of!(PageHeader, level)),
        ("m_flagBits", offset_of!(PageHeader, flags)),
        ("m_indexId", offset_of!(PageHeader, index_id)),
        ("m_prevPage", offset_of!(PageHeader, prev)),
        ("pminlen", offset_of!(PageHeader, pminlen)),
        ("m_nextPage", offset_of!(PageHeader, next)),
        ("m_slotCnt", offset_of!(PageHeader, slot_count)),
        ("m_objId", offset_of!(PageHeader, object_id)),
        ("m_freeCnt", offset_of!(PageHeader, free_count)),
        ("m_freeData", offset_of!(PageHeader, free_data)),
        ("m_pageId", offset_of!(PageHeader, page_id)),
        ("m_reservedCnt", offset_of!(PageHeader, reserved_count)),
        ("m_lsn", offset_of!(PageHeader, lsn)),
        ("m_xactReserved", offset_of!(PageHeader, xact_reserved)),
        ("m_xdesId", offset_of!(PageHeader, xdes_id)),
        ("m_ghostRecCnt", offset_of!(PageHeader, ghost_count)),
        ("m_tornBits", offset_of!(PageHeader, torn_bits)),
        ("reserved", offset_of!(PageHeader, reserved)),
    ] {
        assert_eq!(row(Structure::PageHeader, name).place, Place::At(offset as u16), "{name}");
    }
    assert_eq!(Structure::PageHeader.fields().len(), 21);
}
