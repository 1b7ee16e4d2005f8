//! One message of CHECKDB or of this program, and the place that it names.

use std::fmt;

use format::PageId;

use super::template::{self, Captured};
use crate::heading::{cut, digits};

/// The number of bytes of a message's text that are kept.
const TEXT_BYTES: usize = 480;
/// The number of bytes of a message's text that are examined. The texts of CHECKDB are shorter.
pub(super) const LONGEST: usize = 8 << 10;

/// The place that a message names. Two places are the same place if all parts are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// Object ID; `None` if the message names no object, or the object 0.
    pub object: Option<i32>,
    /// Index ID.
    pub index: Option<i32>,
    /// The page.
    pub page: Option<PageId>,
    /// The slot on the page.
    pub slot: Option<u16>,
}

impl Place {
    /// Whether no part of the two places is known to be different. A part that only one of them names is ignored, but
    /// both must name the page, or both must name the object and none a page.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let is_anchored = match (self.page, other.page) {
            (Some(_), Some(_)) => true,
            (None, None) => self.object.is_some() && other.object.is_some(),
            _ => false,
        };
        is_anchored
            && self.page == other.page
            && same(self.slot, other.slot)
            && same(self.object, other.object)
            && same(self.index, other.index)
    }

    /// This place without the slot.
    pub(super) fn without_slot(self) -> Self {
        Self { slot: None, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.object.map(|id| format!("object {id}")));
        parts.extend(self.index.filter(|_| self.object.is_some()).map(|id| format!("index {id}")));
        parts.extend(self.page.map(|page| format!("page {page}")));
        parts.extend(self.slot.map(|slot| format!("slot {slot}")));
        match parts.is_empty() {
            true => f.write_str("no object or page"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The number of the message. Catalog and Service Broker messages have the number of their wrapper, 8992 or 8997.
    pub number: u32,
    /// The level; 16 if only the text is known.
    pub level: u8,
    /// The state; 0 if only the text is known.
    pub state: u16,
    /// The text, cut off after some hundred bytes.
    pub text: String,
    /// The place that the text names. If the wording of the text is unknown, the place in the columns.
    pub place: Place,
    /// The place in the columns of TABLERESULTS, or in the values of a finding.
    pub columns: Option<Place>,
    /// Id of the check; `None` for a message of the server.
    pub check: Option<&'static str>,
    /// Whether the number was found by the wording, because the text has no heading with a number.
    pub is_number_inferred: bool,
    /// Whether the place is only partly known, because the text is localized or has an unknown wording.
    pub is_partial: bool,
    /// The inserted values of a message that names no page, to tell two such messages from each other.
    pub(super) detail: Option<String>,
}

/// What makes two messages the same.
pub(super) type Key = (Place, u32, Option<String>);

impl Message {
    /// A message, with the place that its text and its columns name.
    pub(super) fn new(number: u32, level: u8, state: u16, text: &str, columns: Option<Place>) -> Self {
        let (number, text) = wrapped(number, cut(text, LONGEST));
        let captured = template::of_number(number, &text);
        let is_partial = captured.is_none() && columns.is_none();
        let place = match (&captured, columns) {
            (Some(captured), columns) => captured.place().unwrap_or(columns.unwrap_or_default()),
            (None, Some(columns)) => columns,
            (None, None) => guessed(number, &text),
        };
        let detail = match (place.page, &captured) {
            (Some(_), _) => None,
            (None, Some(captured)) => Some(captured.detail()),
            (None, None) => Some(template::normal(&text)),
        };
        let text = cut(&text, TEXT_BYTES).to_owned();
        Self { number, level, state, text, place, columns, check: None, is_number_inferred: false, is_partial, detail }
    }

    /// A message without a heading. `None` if the wording is that of no check.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let (number, _) = template::of_any(cut(text, LONGEST))?;
        let state = 0;
        Some(Self { is_number_inferred: true, ..Self::new(number, findings::registry::LEVEL, state, text, None) })
    }

    pub(super) fn key(&self) -> Key {
        (self.place, self.number, self.detail.clone())
    }

    /// The values that the text inserts, if it has the wording of a check.
    pub(super) fn captured(&self) -> Option<Captured> {
        template::of_number(self.number, &self.text)
    }

    /// The number inside the wrapper that CHECKDB puts around messages of the catalog and of Service Broker, and the text
    /// behind it.
    pub(super) fn wrapped(&self) -> Option<(u32, &str)> {
        let (_, rest) = self.text.split_once(" Msg ").filter(|_| matches!(self.number, 8992 | 8997))?;
        digits(rest)
    }

    /// All places by which this message may be found.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        [Some(self.place), self.columns].into_iter().flatten()
    }

    /// Sets the row that a detail message after this message names.
    pub(super) fn set_row(&mut self, row: Place) {
        (self.place.page, self.place.slot) = (row.page, row.slot);
        self.detail = None;
    }
}

/// The place in a text of unknown wording.
fn guessed(number: u32, text: &str) -> Place {
    let place = template::guessed(text);
    match template::guessed_index(text).filter(|_| matches!(number, 8951 | 8952) && place.object.is_none()) {
        Some((object, index)) => Place { object: Some(object), index: Some(index), ..place },
        None => place,
    }
}

/// The number and the text of a message, with the wrapper that CHECKDB puts around messages of the catalog and of
/// Service Broker. CHECKCATALOG prints catalog messages without it.
fn wrapped(number: u32, text: &str) -> (u32, String) {
    match number {
        3851..=3859 => (8992, format!("Check Catalog Msg {number}, State 1: {text}")),
        9677..=9683 | 9705..=9716 => (8997, format!("Service Broker Msg {number}, State 1: {text}")),
        _ => (number, text.to_owned()),
    }
}
