//! The order of causes: what is damaged below comes before what fails above it.

use findings::registry::CauseRank;

use super::Explained;

/// The part of a server that a message is about, from the bottom up. A message of a lower part may be the cause of the
/// messages of higher parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Layer {
    Machine,
    Storage,
    Files,
    Log,
    Pages,
    Findings,
    Recovery,
    State,
    Snapshot,
    Backup,
    Run,
    Totals,
    Repair,
    Other,
}

impl Layer {
    /// The name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Storage => "storage",
            Self::Files => "files",
            Self::Log => "log",
            Self::Pages => "pages",
            Self::Findings => "findings",
            Self::Recovery => "recovery",
            Self::State => "state",
            Self::Snapshot => "snapshot",
            Self::Backup => "backup",
            Self::Run => "run",
            Self::Totals => "totals",
            Self::Repair => "repair",
            Self::Other => "other",
        }
    }
}

/// The place of a message in the order of causes. Messages about findings are ordered like the registry orders them:
/// first those that say what is wrong, by phase, then those that follow from others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    pub(super) layer: Layer,
    cause: CauseRank,
    /// The position of the number within its layer.
    position: usize,
    number: u16,
}

impl Rank {
    pub(super) fn of(number: u16, explained: Explained) -> Self {
        let listed = LAYERS.iter().find_map(|(layer, numbers)| {
            let position = numbers.iter().position(|listed| *listed == number)?;
            Some((*layer, position))
        });
        let cause = CauseRank::of(match explained {
            Explained::Check(check) => Some(check),
            Explained::Message(_) => None,
        });
        let other = match (explained, number) {
            (Explained::Check(_), _) => Layer::Findings,
            (_, 3851..=3858) => Layer::Findings,
            (_, 3000..=3299 | 4300..=4399 | 18200..=18299) => Layer::Backup,
            (_, 2500..=2599 | 5200..=5299 | 7900..=7999 | 8900..=8999) => Layer::Run,
            _ => Layer::Other,
        };
        let (layer, position) = listed.unwrap_or((other, usize::MAX));
        Self { layer, cause, position, number }
    }

    /// Whether the message only follows from other messages.
    pub(super) fn follows(&self) -> bool {
        match self.layer {
            Layer::Findings => self.cause.follows(),
            Layer::Totals => true,
            layer => layer == Layer::Backup && self.number == 3013,
        }
    }
}

/// The messages whose layer does not follow from their number, causes first.
const LAYERS: [(Layer, &[u16]); 12] = [
    (Layer::Machine, &[855, 856, 832, 854, 701, 802, 8645, 17883]),
    (Layer::Storage, &[1117, 112, 665, 1450, 1130, 823, 825, 833, 845, 846, 844, 847, 1105, 9002, 3633, 3634, 17053]),
    (Layer::Files, &[17204, 17207, 5120, 5123, 5105, 17113, 5171, 5172, 5173, 33126, 33111]),
    (Layer::Log, &[9001, 9003, 9004]),
    (Layer::Pages, &[824, 829, 605, 5180, 211, 8646, 644, 7105, 5242, 5243, 601, 3624, 5571, 5572]),
    (Layer::Recovery, &[3448, 3456, 3313, 3437, 3452, 41316, 5901, 3414]),
    (Layer::State, &[926, 945, 1813, 916, 976, 596]),
    (Layer::Snapshot, &[5128, 5106, 1823, 7928, 5030, 7926, 5269, 5278]),
    (
        Layer::Backup,
        &[3201, 3203, 3271, 18210, 3242, 3243, 3241, 3266, 3183, 3189, 3043, 3136, 4312, 4305, 4326, 3159, 3013],
    ),
    (Layer::Run, &[8967, 8921, 5235, 2536]),
    (Layer::Totals, &[8954, 8990, 8989, 8958, 8957, 17573]),
    (
        Layer::Repair,
        &[8911, 8912, 8922, 8923, 8924, 8945, 8949, 8950, 8953, 7909, 7910, 7911, 7912, 7913, 7914, 7915, 7916, 7917],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(number: u16) -> Rank {
        Rank::of(number, Explained::find(u32::from(number), None).unwrap())
    }

    #[test]
    fn a_cause_is_ranked_before_what_follows_from_it() {
        let chains: [&[u16]; 5] = [
            &[1117, 823, 824, 8939, 8928, 8976, 8978, 3313, 3414, 926],
            &[112, 17053, 1823, 7928, 5030, 7926],
            &[17204, 9001, 3414],
            &[3203, 3013],
            &[8939, 8990, 8989, 8958],
        ];
        for chain in chains {
            assert!(chain.is_sorted_by_key(|number| rank(*number)), "{chain:?}");
        }
    }

    #[test]
    fn every_number_of_the_layers_is_explained_and_has_one_layer() {
        let numbers: Vec<u16> = LAYERS.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect();
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), numbers.len());
        for number in numbers {
            assert!(Explained::find(u32::from(number), None).is_some(), "{number}");
        }
    }
}
