//! Messages are listed in the order of real CHECKDB output (docs/format/cases.md).

use super::*;

/// Damages the image and returns the expected messages in listing order.
type Sequence = fn(&mut Image, &Facts) -> Vec<(u16, u32)>;

pub fn trials(subject: &'static str) -> Vec<Trial> {
    let trial = |(name, damage): (&str, Sequence)| {
        Trial::test(format!("damage: order of messages: {name} ({})", subjects::short(subject)), move || {
            let mut image = subjects::image(subject);
            let facts = facts(&image);
            let expected = damage(&mut image, &facts);
            let report = image.check();
            let listed = report.findings.iter().map(|f| (f.check.msg, f.page.map_or(0, |page| page.page)));
            let found: Vec<(u16, u32)> = listed.take(expected.len()).collect();
            if found == expected { Ok(()) } else { Err(format!("found {found:?}\nexpected {expected:?}").into()) }
        })
    };
    let kinds: [(&str, Sequence); 4] = [
        ("a leaf with a wrong checksum: cases 19 and 20", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit_unsealed(page, |bytes| bytes.chunks_exact_mut(512).skip(1).for_each(|sector| sector[511] ^= 3));
            vec![(8939, page), (8928, page), (8976, page), (8978, right)]
        }),
        ("a zeroed leaf: case 17", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit_unsealed(page, |bytes| bytes.fill(0));
            vec![(8909, page), (8928, page), (8976, page), (8978, right)]
        }),
        ("a damaged record: case 5", |image, facts| {
            let [_, page, right] = middle(&facts.clustered);
            image.edit(page, |bytes| {
                let at = offset_of(bytes, 0);
                // With this length, the fixed part would end beyond the record, and so would everything after the fixed
                // part.
                put16(bytes, at + 2, 7000);
            });
            vec![(8944, page), (8928, page), (8976, page), (8978, right)]
        }),
        ("a zeroed PFS page", |image, _| {
            image.edit_unsealed(1, |bytes| bytes.fill(0));
            vec![(8946, 1), (8909, 1), (8998, 0)]
        }),
    ];
    kinds.into_iter().map(trial).collect()
}
