//! The start of a part. It names the plan and the task, and can be read without the key.

use std::io::{self, Read};

use check::part::Digest;
use serde::{Deserialize, Serialize};

use crate::plan::{Image, Plan, PlanId, Task, VERSION};

const MAGIC: &[u8; 8] = b"MDFSPART";
/// A limit, in bytes, for the head of a part. No real head reaches this limit.
const MOST_BYTES: u32 = 1 << 16;

/// The plan, round and task that a part names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) plan: PlanId,
    pub(crate) build: String,
    pub(crate) image: Image,
    pub(crate) round: u32,
    pub(crate) task: Task,
}

/// The reason why the start of a file is not the head of a part.
#[derive(Debug)]
pub(crate) enum HeadError {
    Io(io::Error),
    /// The file is not a part.
    NotAPart,
    /// The part has a different format version.
    Version(u32),
    /// The head of the part is damaged.
    Damaged,
}

impl From<io::Error> for HeadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Damaged } else { Self::Io(error) }
    }
}

impl Head {
    /// The head of the part of `task`.
    pub(crate) fn of<O>(plan: &Plan<O>, task: &Task) -> Self {
        let Plan { plan, build, image, round, .. } = plan;
        Self { plan: plan.clone(), build: build.clone(), image: image.clone(), round: *round, task: task.clone() }
    }

    /// The head in the form in which it is written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Serializing texts and numbers cannot fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
        [&MAGIC[..], &VERSION.to_le_bytes(), &length.to_le_bytes(), &json].concat()
    }

    /// Reads the head from the start of a part. The sums of the part follow it.
    pub(crate) fn read(from: &mut dyn Read) -> Result<Self, HeadError> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(HeadError::NotAPart);
        }
        let mut number = [0; 4];
        from.read_exact(&mut number)?;
        match u32::from_le_bytes(number) {
            VERSION => {}
            version => return Err(HeadError::Version(version)),
        }
        from.read_exact(&mut number)?;
        let length = u32::from_le_bytes(number);
        if length > MOST_BYTES {
            return Err(HeadError::Damaged);
        }
        let mut json = vec![0; length as usize];
        from.read_exact(&mut json)?;
        serde_json::from_slice(&json).map_err(|_| HeadError::Damaged)
    }

    /// Returns the head of the part and the digest of the plan as bytes. The hashes in the part also cover these bytes,
    /// so the sums of the part are valid only with this head and this plan.
    pub(crate) fn bound_to(&self, plan: &Digest) -> Vec<u8> {
        [&self.bytes()[..], plan].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let image = Image { catalog: "1".to_owned(), maps: Some("2".to_owned()) };
        let task = Task { id: 3, file: 1, first: 128, pages: 256 };
        Head { plan: PlanId::new().unwrap(), build: "0.1".to_owned(), image, round: 1, task }
    }

    #[test]
    fn a_head_comes_back_whole_and_nothing_of_what_follows_is_taken() {
        let head = head();
        let bytes = [head.bytes(), vec![1, 2, 3]].concat();
        let mut rest = bytes.as_slice();
        assert_eq!(Head::read(&mut rest).ok(), Some(head));
        assert_eq!(rest, [1, 2, 3]);
    }

    #[test]
    fn a_head_that_was_cut_or_is_of_another_kind_is_refused() {
        let bytes = head().bytes();
        for length in 0..bytes.len() {
            assert!(matches!(Head::read(&mut &bytes[..length]), Err(HeadError::Damaged)), "{length}");
        }
        assert!(matches!(Head::read(&mut &[7; 100][..]), Err(HeadError::NotAPart)));
        let mut other = bytes.clone();
        other[8] = 9;
        assert!(matches!(Head::read(&mut other.as_slice()), Err(HeadError::Version(9))));
        other = bytes;
        other[12..16].fill(0xFF);
        assert!(
            matches!(Head::read(&mut other.as_slice()), Err(HeadError::Damaged)),
            "no more is read than heads have"
        );
    }
}
