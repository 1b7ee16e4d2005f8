//! Texts with placeholders, which are matched against whole lines.

/// A piece of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'a> {
    /// Fixed characters.
    Literal(&'a str),
    /// A placeholder with this name, which matches a value.
    Place(&'a str),
}

/// The pieces of a template in the registry, such as `Page {page}, slot {slot}`.
pub(super) fn of_template(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, behind) = after.split_once('}').expect("a template closes its places");
        pieces.extend([Piece::Literal(before), Piece::Place(place)]);
        rest = behind;
    }
    pieces.push(Piece::Literal(rest));
    pieces
}

/// The pieces of a text in `sys.messages`, such as `Page %S_PGID, slot %d`. Flags and widths belong to the placeholder.
pub(super) fn of_server(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('%') {
        let (before, place) = rest.split_at(start);
        let kinds =
            ["S_PGID", "S_DATE", "S_MSG", "S_LSN", "I64d", ".*ls", "08x", "hs", "ls", "ld", "lx", "d", "x", "s"];
        let kind = kinds.iter().find(|kind| place[1..].starts_with(**kind)).expect("a known kind of place");
        pieces.extend([Piece::Literal(before), Piece::Place(kind)]);
        rest = &place[1 + kind.len()..];
    }
    pieces.push(Piece::Literal(rest));
    pieces
}

/// The values of the placeholders, if the pieces match all of `text`. `fits` decides whether a value is possible.
pub(super) fn values<'p, 't>(
    pieces: &[Piece<'p>],
    text: &'t str,
    fits: &dyn Fn(&str, &str) -> bool,
) -> Option<Vec<(&'p str, &'t str)>> {
    let Some((piece, rest)) = pieces.split_first() else { return text.is_empty().then(Vec::new) };
    match *piece {
        Piece::Literal(literal) => values(rest, text.strip_prefix(literal)?, fits),
        Piece::Place(name) => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.filter_map(|end| {
                let (value, behind) = text.split_at(end);
                let mut found = if fits(name, value) { values(rest, behind, fits) } else { None }?;
                found.insert(0, (name, value));
                Some(found)
            })
            .next()
        }
    }
}
