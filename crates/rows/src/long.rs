//! Long values, which are read on request.

use std::cell::Cell;
use std::io;

use source::PageSource;

use crate::blob::{Blob, Blobs};
use crate::values::text::{Form, TextStream};
use crate::{ReadLong, Unreadable};

/// A value is delivered in pieces if its stored length exceeds this number of bytes.
pub(crate) const LONG_BYTES: u64 = 1 << 20;

/// A value that is stored off the row and is too long to keep in memory.
pub(crate) struct LongSource<'a> {
    source: &'a dyn PageSource,
    blob: Blob,
    column: usize,
    /// The encoding of the text; `None` if the value is not text.
    form: Option<Form>,
    altered: Cell<bool>,
}

impl<'a> LongSource<'a> {
    pub(crate) fn new(source: &'a dyn PageSource, blob: Blob, column: usize, form: Option<Form>) -> Self {
        Self { source, blob, column, form, altered: Cell::new(false) }
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.blob.bytes()
    }

    pub(crate) fn column(&self) -> usize {
        self.column
    }

    pub(crate) fn is_text(&self) -> bool {
        self.form.is_some()
    }

    /// Whether a character was replaced while the text was read.
    pub(crate) fn was_altered(&self) -> bool {
        self.altered.get()
    }
}

impl ReadLong for LongSource<'_> {
    fn pieces(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Result<(), Unreadable>> {
        let mut blobs = Blobs::new(self.source);
        let Some(form) = self.form else { return blobs.pieces(&self.blob, each) };
        let mut stream = TextStream::new(form, self.blob.bytes());
        let mut text = Vec::new();
        let mut fault = None;
        let read = blobs.pieces(&self.blob, &mut |piece| {
            if fault.is_some() {
                return Ok(());
            }
            text.clear();
            stream.push(piece, &mut text);
            fault = stream.fault();
            if fault.is_some() || text.is_empty() { Ok(()) } else { each(&text) }
        })?;
        if let Err(why) = read {
            return Ok(Err(why));
        }
        text.clear();
        match stream.finish(&mut text) {
            Ok(altered) => self.altered.set(self.altered.get() || altered),
            Err(why) => return Ok(Err(why)),
        }
        if !text.is_empty() {
            each(&text)?;
        }
        Ok(Ok(()))
    }
}
