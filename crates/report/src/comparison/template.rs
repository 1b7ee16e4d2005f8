//! The wordings of messages: finds the values that a message inserts, by the template of its check.

use std::sync::LazyLock;

use findings::registry::ALL;
use format::PageId;

use super::message::Place;
use crate::heading::start;

/// Number of bytes in which an address or ID in parentheses ends.
const LONGEST_ADDRESS: usize = 40;

/// The wording of one check: the text before the first value, then each value with the text after it. All texts are
/// [normal](normal).
struct Template {
    number: u16,
    start: String,
    places: Vec<(&'static str, String)>,
}

static TEMPLATES: LazyLock<Vec<Template>> =
    LazyLock::new(|| ALL.iter().map(|check| Template::of(check.msg, check.template)).collect());

/// The values that a message inserts, by the names of the places in the template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Captured(Vec<(&'static str, String)>);

impl Template {
    fn of(number: u16, template: &'static str) -> Self {
        let mut parts = Vec::new();
        let (start, mut rest) = template.split_once('{').unwrap_or((template, ""));
        while let Some((name, after)) = rest.split_once('}') {
            let (text, next) = after.split_once('{').unwrap_or((after, ""));
            parts.push((name.strip_suffix(":x").unwrap_or(name), text));
            rest = next;
        }
        let (mut start, mut places) = (start.to_owned(), Vec::<(&'static str, String)>::new());
        for (name, text) in parts {
            let (before, values) = owner(name);
            match places.last_mut() {
                Some((_, last)) => last.push_str(before),
                None => start.push_str(before),
            }
            places.extend(values.iter().map(|&(name, text)| (name, text.to_owned())));
            if values.is_empty() {
                places.push((name, String::new()));
            }
            if let Some((_, last)) = places.last_mut() {
                last.push_str(text);
            }
        }
        for (_, text) in &mut places {
            *text = squeezed(text);
        }
        if let Some((_, text)) = places.last_mut() {
            *text = text.trim_end_matches('.').trim_end().to_owned();
        }
        Self { number, start: squeezed(&start), places }
    }

    fn captured(&self, text: &str) -> Option<Captured> {
        let mut rest = text.strip_prefix(self.start.as_str())?;
        let mut values = Vec::with_capacity(self.places.len());
        for (name, after) in &self.places {
            let (value, next) = match after.as_str() {
                "" => (rest, ""),
                after => rest.split_once(after)?,
            };
            values.push((*name, value.to_owned()));
            rest = next;
        }
        Some(Captured(values))
    }
}

/// The text and the places that stand for an owner: the text before the first value, then each value with the text
/// after it. Empty for a place that is not an owner.
fn owner(name: &str) -> (&'static str, &'static [(&'static str, &'static str)]) {
    const OWN: &[(&str, &str)] = &[
        ("object_id", ", index ID "),
        ("index_id", ", partition ID "),
        ("partition_id", ", alloc unit ID "),
        ("alloc_unit_id", " (type "),
        ("alloc_type", ")"),
    ];
    const OWN_AU: &[(&str, &str)] = &[
        ("object_id", ", index ID "),
        ("index_id", ", partition ID "),
        ("partition_id", ", AU ID "),
        ("alloc_unit_id", " (type "),
        ("alloc_type", ")"),
    ];
    const OWN_SHORT: &[(&str, &str)] = &[
        ("object_id", ", index "),
        ("index_id", ", partition "),
        ("partition_id", ", AU "),
        ("alloc_unit_id", " ("),
        ("alloc_type", ")"),
    ];
    const OTHER: &[(&str, &str)] = &[("other_object_id", ", index ID "), ("other_owner", ")")];
    const OTHER_SHORT: &[(&str, &str)] = &[("other_object_id", ", index "), ("other_owner", ")")];
    match name {
        "owner" | "owner_lower" | "purity_owner" => ("object ID ", OWN),
        "owner_au" => ("object ID ", OWN_AU),
        "owner_short" => ("object ", OWN_SHORT),
        "other_owner" | "other_owner_au" => ("object ID ", OTHER),
        "other_owner_short" => ("object ", OTHER_SHORT),
        _ => ("", &[]),
    }
}

impl Captured {
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(place, _)| *place == name).map(|(_, value)| value.as_str())
    }

    /// The number in the value of a place.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value(name)?.trim().parse().ok()
    }

    pub(super) fn page(&self, name: &str) -> Option<PageId> {
        address(self.value(name)?).map(|(page, _)| page)
    }

    /// The place that the message names; `None` if it names no object and no page.
    pub(super) fn place(&self) -> Option<Place> {
        let id = |name: &str| self.number(name).and_then(|id| i32::try_from(id).ok());
        let object = id("object_id").filter(|&id| id != 0);
        let mut place = Place { object, index: object.and(id("index_id")), ..Place::default() };
        if let Some((page, slot)) = self.value("record").and_then(record) {
            (place.page, place.slot) = (Some(page), Some(slot));
        } else {
            let named = self.page("page").filter(|&page| page != PageId::NONE);
            // A page (0:0) stands for the catalog, so that the message is about the page that it refers to.
            place.page = named.or_else(|| self.page("ref_page")).or_else(|| self.page("header_page"));
            place.slot = named.and_then(|_| self.number("slot")).and_then(|slot| u16::try_from(slot).ok());
        }
        (place != Place::default()).then_some(place)
    }

    /// The values that tell two messages of the same number and object from each other. The name and ID of the database
    /// are not among them.
    pub(super) fn detail(&self) -> String {
        const OTHER: [&str; 8] =
            ["database", "database_id", "command", "object_id", "index_id", "partition_id", "alloc_type", "table"];
        let is_told = |name: &str| !OTHER.contains(&name) || (name == "table" && self.value("object_id").is_none());
        let values = self.0.iter().filter(|(name, _)| is_told(name)).map(|(_, value)| value.as_str());
        values.collect::<Vec<_>>().join("|")
    }
}

/// The values in a text that has the wording of a check with this message number.
pub(super) fn of_number(number: u32, text: &str) -> Option<Captured> {
    let text = normal(text);
    TEMPLATES.iter().filter(|template| u32::from(template.number) == number).find_map(|one| one.captured(&text))
}

/// The message number of the check whose wording a text has, and the values in the text.
pub(super) fn of_any(text: &str) -> Option<(u32, Captured)> {
    let text = normal(text);
    TEMPLATES.iter().find_map(|template| Some((template.number.into(), template.captured(&text)?)))
}

/// A text in small ASCII letters, with single blanks and plain quotation marks.
pub(super) fn normal(text: &str) -> String {
    squeezed(text.trim()).trim_end_matches('.').to_owned()
}

fn squeezed(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_whitespace() || c == '\u{feff}' => {
                if !squeezed.ends_with(' ') {
                    squeezed.push(' ');
                }
            }
            '\u{2018}' | '\u{2019}' => squeezed.push('\''),
            '\u{201c}' | '\u{201d}' => squeezed.push('"'),
            '\u{2013}' | '\u{2014}' | '\u{2212}' => squeezed.push('-'),
            c => squeezed.push(c.to_ascii_lowercase()),
        }
    }
    squeezed
}

/// The place in a text of unknown wording, such as a localized text: the first address of a row or a page. The object
/// and the index are the first two numbers if a partition ID and an allocation unit ID follow them; in English texts they
/// are behind their names.
pub(super) fn guessed(text: &str) -> Place {
    let text = normal(text);
    let after = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        rest.get(..end)?.parse::<i32>().ok()
    };
    let (page, slot) = guessed_row(&text).map_or((None, None), |(page, slot)| (Some(page), slot));
    let (object, index) = match after("object id") {
        Some(object) => (Some(object), after("index id")),
        None => owner_of(&numbers(&text)),
    };
    let object = object.filter(|&id| id != 0);
    Place { object, index: object.and(index), page, slot }
}

/// The first address of a page or row. An address behind an equals sign is a value, such as the row that an index row
/// points to, and counts only if there is no other address.
fn guessed_row(text: &str) -> Option<(PageId, Option<u16>)> {
    let at = |at: usize| {
        let rest = text.get(at..)?;
        address(rest).map(|(page, _)| (page, None)).or_else(|| record(rest).map(|(page, slot)| (page, Some(slot))))
    };
    let is_value = |at: usize| text.get(..at).is_some_and(|before| before.trim_end().ends_with('='));
    let addresses = || text.match_indices('(').filter_map(|(start, _)| Some((is_value(start), at(start)?)));
    let first = |is_value: bool| addresses().find(|(value, _)| *value == is_value).map(|(_, row)| row);
    first(false).or_else(|| first(true))
}

/// The object and the index in a localized 8951 or 8952: a table and an index, each with its ID in parentheses behind its
/// name. `None` if the text has another number of IDs, since a name may have any text.
pub(crate) fn guessed_index(text: &str) -> Option<(i32, i32)> {
    let outside = text.split('\'').step_by(2).collect::<String>();
    let id = |(at, _): (usize, &str)| {
        let (inside, _) = start(outside.get(at + 1..)?, LONGEST_ADDRESS).split_once(')')?;
        let is_labelled = inside.chars().any(char::is_alphabetic) && !inside.contains(':');
        inside.rsplit(|c: char| !c.is_ascii_digit()).next().filter(|_| is_labelled)?.parse::<i32>().ok()
    };
    let ids: Vec<i32> = outside.match_indices('(').filter_map(id).take(3).collect();
    match *ids {
        [object, index] => Some((object, index)),
        _ => None,
    }
}

fn owner_of(numbers: &[i64]) -> (Option<i32>, Option<i32>) {
    match *numbers {
        [object, index, partition, unit, ..] if partition > i64::from(i32::MAX) && unit > i64::from(i32::MAX) => {
            (i32::try_from(object).ok(), i32::try_from(index).ok())
        }
        _ => (None, None),
    }
}

/// The first numbers of a text that are outside page addresses.
fn numbers(text: &str) -> Vec<i64> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c))
        .filter_map(|word| word.parse().ok())
        .take(4)
        .collect()
}

/// Reads a page address at the start of a text, such as `(1:153)`, and returns it with the rest of the text. The number
/// of the page is signed in messages.
pub(super) fn address(text: &str) -> Option<(PageId, &str)> {
    let text = text.trim_start().strip_prefix('(')?;
    let (inside, _) = start(text, LONGEST_ADDRESS).split_once(')')?;
    let rest = text.get(inside.len() + 1..)?;
    let (file, page) = inside.split_once(':')?;
    Some((PageId { file: file.trim().parse().ok()?, page: signed(page)? }, rest))
}

/// A page number, which messages and columns show as a signed number of 32 bits.
pub(super) fn signed(text: &str) -> Option<u32> {
    let number: i64 = text.trim().parse().ok()?;
    u32::try_from(number).ok().or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned))
}

/// Reads the address of a row, such as `(1:45:28)` or `HEAP RID = (1:45:28)`.
fn record(text: &str) -> Option<(PageId, u16)> {
    let (inside, _) = start(text.split_once('(')?.1, LONGEST_ADDRESS).split_once(')')?;
    let mut parts = inside.split(':');
    let page = PageId { file: parts.next()?.trim().parse().ok()?, page: signed(parts.next()?)? };
    let slot = parts.next()?.trim().parse().ok()?;
    parts.next().is_none().then_some((page, slot))
}
