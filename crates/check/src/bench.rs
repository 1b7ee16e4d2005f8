//! What the benches of this crate measure. No part of its interface.

use catalog::Database;
use format::record::Record;
use format::{PageId, RecordId};
use source::{DataFile, PageSource, ReadError};

use crate::context::Context;
use crate::coverage::Coverage;
use crate::options::Options;
use crate::spill::Space;
use crate::units::Units;
use crate::{index_match, survey};

/// A database without files.
struct Nothing;

impl PageSource for Nothing {
    fn files(&self) -> &[DataFile] {
        &[]
    }

    fn read(&self, first: PageId, _buffer: &mut [u8]) -> Result<usize, ReadError> {
        Err(ReadError::NoSuchFile { file_id: first.file })
    }
}

/// Calls `measure` with a function that looks at records of the first allocation unit of `database` as the sweep does for
/// the indexes of their table, and with the reasons why indexes are left out.
pub fn index_rows(database: &Database, measure: impl FnOnce(&mut dyn FnMut(&[Vec<u8>]), Vec<String>)) {
    let options = Options { hash_seed: Some(1), ..Options::default() };
    let (mut units, mut findings, mut coverage) = (Units::of(database), Vec::new(), Coverage::default());
    let survey = survey::survey(&Nothing, database, &mut units, &mut findings, &mut coverage);
    let space = Space::new(None);
    let context = Context::new(&Nothing, database, &options, units, survey, &space);
    let mut sums = index_match::Sums::default();
    let left_out = context.indexes.left_out().map(|(name, reason)| format!("{}: {reason}", name.text)).collect();
    let mut look = |records: &[Vec<u8>]| {
        for (number, bytes) in records.iter().enumerate() {
            let Ok(record) = Record::data(bytes) else { continue };
            let at = RecordId { page: PageId::new(1, number as u32 / 64), slot: (number % 64) as u16 };
            index_match::row(&context, 0, at, &record, &mut sums, &mut findings);
        }
    };
    measure(&mut look, left_out);
}
