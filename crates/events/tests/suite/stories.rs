//! Tests with generated sequences of checkpoints. All file formats must yield the same checkpoints, and damaged files
//! must never yield wrong checkpoints.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use events::checkpoints::{Mark, Paired, pair};
use events::{Clock, Event, Kind, error_log, identify, xel, xml};
use lab::events::{Story, TextEncoding, XmlForm};

const FORMS: [XmlForm; 5] = [
    XmlForm::Rows,
    XmlForm::Column,
    XmlForm::Csv,
    XmlForm::Exported,
    XmlForm::RingBuffer { truncated: true, dropped: 12 },
];

fn stories() -> impl Iterator<Item = Story> {
    (0..6).map(|seed| Story::new(seed, 7, 40, seed % 2 == 0))
}

fn paired(events: impl Iterator<Item = Event>) -> Paired {
    pair(events.map(|event| Mark::of(&event).unwrap()).collect())
}

fn from_xel(bytes: &[u8]) -> Paired {
    paired(xel::Reader::new(bytes).unwrap().map(Result::unwrap))
}

/// Compares the paired checkpoints with the generated checkpoints.
fn judge(found: &Paired, story: &Story) {
    let ms = |moment: events::Moment| (moment.0 - Story::start()).div_euclid(events::Moment::MILLISECOND);
    let spans: Vec<_> =
        found.checkpoints.iter().map(|one| (one.database_id.unwrap(), ms(one.began), ms(one.ended))).collect();
    let truth: Vec<_> =
        story.checkpoints.iter().map(|truth| (truth.database_id, truth.began_ms, truth.ended_ms)).collect();
    assert_eq!(spans, truth);
    assert_eq!(
        (found.unpaired_begins, found.unpaired_ends, found.repeated),
        (story.unpaired_begins, story.unpaired_ends, 0)
    );
    assert_eq!(found.checkpoints.iter().all(|one| one.activity.is_some()), story.tracks_causality);
}

#[test]
fn an_event_file_tells_the_story() {
    for story in stories() {
        for alignment in [0x200, 0x1000] {
            let bytes = story.event_file(alignment);
            assert_eq!(identify(&bytes), Some(Kind::Xel));
            judge(&from_xel(&bytes), &story);
        }
    }
}

#[test]
fn every_form_of_xml_tells_the_story_in_every_encoding() {
    every_form_of_xml(stories().take(1));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn every_form_of_xml_tells_further_stories_in_every_encoding() {
    every_form_of_xml(stories().skip(1));
}

fn every_form_of_xml(stories: impl Iterator<Item = Story>) {
    for story in stories {
        for form in FORMS {
            for encoding in TextEncoding::ALL {
                let bytes = encoding.bytes(&story.xml(form));
                assert_eq!(identify(&bytes), Some(Kind::Xml));
                let mut reader = xml::Reader::new(&bytes[..]);
                judge(&paired(reader.by_ref().map(Result::unwrap)), &story);
                let of_ring = matches!(form, XmlForm::RingBuffer { .. });
                let said = reader.ring_buffer();
                assert_eq!((said.is_truncated, said.dropped), (of_ring, if of_ring { 12 } else { 0 }));
            }
        }
    }
}

#[test]
fn a_file_and_its_export_tell_it_once() {
    for story in stories() {
        let bytes = story.event_file(0x200);
        let text = story.xml(XmlForm::Rows);
        let both = xel::Reader::new(&bytes[..]).unwrap().map(Result::unwrap);
        let found = paired(both.chain(xml::Reader::new(text.as_bytes()).map(Result::unwrap)));
        assert_eq!(found.checkpoints, from_xel(&bytes).checkpoints);
        assert_eq!(found.repeated as usize * 2, xel::Reader::new(&bytes[..]).unwrap().count() * 2);
    }
}

#[test]
fn values_of_exports_are_unescaped_and_xml_in_them_stays_xml() {
    let text = "<event name='a' timestamp='2016-07-09T03:30:14.023Z'><data name='x'><value>a &lt; &#98; &amp;</value></data>\
        <data name='map'><value>3</value><text>CDATA <![CDATA[<&>]]></text></data><data name='empty'/>\
        <data name='report'><type name='xml'/><value><d a=\"1 &lt; 2\"><e/>&lt;<f>g</f></d></value></data>\
        <data name='n'><type name='uint64'></type><value>18446744073709551615</value></data>\
        <data name='unknown'><value>&who;</value></data></event>";
    let event = xml::Reader::new(text.as_bytes()).next().unwrap().unwrap();
    let shown: Vec<_> = event.fields.iter().map(|(name, value)| (&**name, value.to_string())).collect();
    let expected = [
        ("x", "a < b &"),
        ("map", "CDATA <&>"),
        ("empty", ""),
        ("report", "<d a=\"1 &lt; 2\"><e/>&lt;<f>g</f></d>"),
        ("n", "18446744073709551615"),
        ("unknown", "&who;"),
    ];
    assert_eq!(shown, expected.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(event.fields[4].1, events::Value::BigUint(u64::MAX));
}

#[test]
fn an_error_log_reports_the_slow_ones() {
    for (story, offset) in stories().zip([0, -480, 330, 120, -60, 0]) {
        let log = story.error_log(5000, offset);
        for encoding in TextEncoding::ALL {
            let bytes = encoding.bytes(&log);
            assert_eq!(identify(&bytes), Some(Kind::ErrorLog));
            let found = error_log::read(&bytes[..]).unwrap();
            assert_eq!((found.clock, found.unclear), (Clock::Utc, 0));
            let mut spans: Vec<_> = found
                .flushes
                .iter()
                .map(|flush| {
                    (flush.database_id.unwrap(), (flush.at.unwrap().0 - Story::start()) / 100_000, flush.ms as i64)
                })
                .collect();
            spans.sort_unstable();
            let slow = story
                .checkpoints
                .iter()
                .map(|truth| (truth.database_id, truth.ended_ms / 10, truth.ended_ms - truth.began_ms));
            assert_eq!(spans, slow.filter(|(.., ms)| *ms > 5000).collect::<Vec<_>>());
            assert!(found.flushes.iter().all(|flush| flush.avg_write_latency_ms == Some(15)));
        }
    }
}

/// Returns the events before the first fault, and whether there was a fault.
fn before_fault<F>(events: impl Iterator<Item = Result<Event, F>>) -> (Vec<Event>, bool) {
    let mut found = Vec::new();
    for event in events {
        match event {
            Ok(event) => found.push(event),
            Err(_) => return (found, true),
        }
    }
    (found, false)
}

#[test]
fn a_cut_event_file_gives_the_events_before_the_cut() {
    cut_an_event_file(&Story::new(1, 2, 4, true));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_cut_event_file_of_many_buffers_gives_the_events_before_the_cut() {
    cut_an_event_file(&Story::new(1, 3, 30, true));
}

fn cut_an_event_file(story: &Story) {
    let bytes = story.event_file(0x200);
    let (all, _) = before_fault(xel::Reader::new(&bytes[..]).unwrap());
    let mut counts = Vec::new();
    for length in 0..bytes.len() {
        let Ok(reader) = xel::Reader::new(&bytes[..length]) else {
            assert!(length < 0x200);
            continue;
        };
        let (found, is_faulty) = before_fault(reader);
        assert_eq!(found, all[..found.len()]);
        // A file that is cut between two buffers looks complete, so the reader finds no fault.
        assert!(is_faulty || length % 0x200 == 0, "{length}");
        counts.push(found.len());
    }
    assert!(counts.is_sorted() && counts.last() == Some(&all.len()));
}

#[test]
#[ignore = "full tier: takes seconds"]
fn a_cut_export_gives_the_events_before_the_cut() {
    let story = Story::new(2, 2, 8, true);
    for form in FORMS {
        let text = story.xml(form);
        let (all, _) = before_fault(xml::Reader::new(text.as_bytes()));
        for length in (0..text.len()).filter(|length| text.is_char_boundary(*length)) {
            let part = &text[..length];
            let (found, is_faulty) = before_fault(xml::Reader::new(part.as_bytes()));
            assert_eq!(found, all[..found.len()]);
            let is_whole = found.len() == part.matches("<event ").count();
            let is_between = matches!(form, XmlForm::Rows | XmlForm::Column | XmlForm::Csv)
                || !part.contains("<events>") && !part.contains("<Ring");
            assert!(is_faulty || (is_whole && is_between), "{form:?} {length}");
        }
    }
}

#[test]
fn a_damaged_buffer_costs_only_its_events() {
    let story = Story::new(3, 3, 200, false);
    let mut bytes = story.event_file(0x200);
    let (all, _) = before_fault(xel::Reader::new(&bytes[..]).unwrap());
    // Damages the second buffer of events, which follows the header of the file, the metadata and the first buffer of
    // events.
    let next = |at: usize| at + u32::from_le_bytes(bytes[at + 16..at + 20].try_into().unwrap()) as usize;
    let at = next(next(0x200)) + 76;
    bytes[at + 4] = 0;
    let events: Vec<_> = xel::Reader::new(&bytes[..]).unwrap().collect();
    let faults: Vec<String> = events.iter().filter_map(|event| event.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with(&format!("is damaged at byte {at}: no event starts at this place")), "{faults:?}");
    let found: Vec<Event> = events.into_iter().filter_map(Result::ok).collect();
    assert!(found.len() < all.len() && found.first() == all.first() && found.last() == all.last());
}

#[test]
fn a_file_that_is_being_written_ends_with_zeros() {
    let story = Story::new(4, 2, 5, true);
    let mut bytes = story.event_file(0x200);
    bytes.extend([0; 0x5000]);
    judge(&from_xel(&bytes), &story);
    bytes.extend([1]);
    assert!(before_fault(xel::Reader::new(&bytes[..]).unwrap()).1);
}

#[test]
fn what_is_not_in_the_metadata_is_shown_as_bytes() {
    let story = Story::new(5, 1, 2, true);
    let bytes = story.event_file(0x200);
    let name: Vec<u8> = "uint32".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    let mut changed = bytes.clone();
    // Changes the ID of the type, which precedes its name, so that the type of the field is unknown.
    changed[at - 2] ^= 0x20;
    let events: Vec<Event> = xel::Reader::new(&changed[..]).unwrap().map(Result::unwrap).collect();
    assert!(events.iter().all(|event| event.undecoded() == 1 && event.fields[0].1.to_string() == "0x05000000"));
}

#[test]
fn only_the_named_events_are_read() {
    let story = Story::new(6, 2, 5, true);
    let bytes = story.event_file(0x200);
    let mut reader = xel::Reader::new(&bytes[..]).unwrap().only(&["checkpoint_end".to_owned()]);
    assert!(reader.by_ref().all(|event| &*event.unwrap().name == "checkpoint_end"));
    assert_eq!(reader.passed_over(), 10 + story.unpaired_begins);
}

/// Changes pseudo-random bytes, the same ones in every run. No reader may panic, and memory and time must stay
/// proportional to the size of the file.
#[test]
#[ignore = "full tier: takes seconds"]
fn damaged_bytes_do_no_harm() {
    let mut number = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |below: usize| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        (number % below as u64) as usize
    };
    let story = Story::new(7, 3, 30, true);
    let (file, text, log) = (story.event_file(0x200), story.xml(XmlForm::Exported), story.error_log(0, 60));
    for _ in 0..4000 {
        let mut changed = file.clone();
        for _ in 0..=next(4) {
            let at = next(changed.len());
            changed[at] = [0, 0xFF, 0x7F, next(256) as u8][next(4)];
        }
        if let Ok(reader) = xel::Reader::new(&changed[..]) {
            let values: usize = reader.flatten().map(|event| event.fields.len() + event.actions.len()).sum();
            assert!(values < changed.len());
        }
        for text in [text.as_bytes(), log.as_bytes()] {
            let mut changed = text.to_vec();
            let at = next(changed.len());
            changed[at] = next(256) as u8;
            let _ = xml::Reader::new(&changed[..]).count();
            let _ = error_log::read(&changed[..]);
            let _ = identify(&changed);
        }
    }
}

#[test]
fn absurd_lengths_do_no_harm() {
    let bytes = Story::new(8, 2, 5, true).event_file(0x200);
    for at in 0..bytes.len() - 4 {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0x7F]);
        if let Ok(reader) = xel::Reader::new(&changed[..]) {
            let _ = reader.count();
        }
    }
    let deep = "<event name='a'>".to_owned() + &"<a>".repeat(100_000);
    assert!(before_fault(xml::Reader::new(deep.as_bytes())).1);
    let around = "<a>".repeat(100_000);
    assert!(before_fault(xml::Reader::new(around.as_bytes())).1);
    let large = "x".repeat(3 << 20);
    assert!(before_fault(xml::Reader::new(large.as_bytes())).1);
    let entities = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;'>]><event name='a'><data name='x'><value>&c;</value></data></event>";
    let (found, _) = before_fault(xml::Reader::new(entities.as_bytes()));
    assert_eq!(found[0].fields[0].1.to_string(), "&c;");
}
