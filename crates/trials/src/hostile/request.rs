//! Parses requests from clients of `mdfsck serve`.

use requests::{BODY_BYTES, HEAD_BYTES, Route, fields, parse, route};

/// Parses a request: its head, its head cut off at various lengths, the route of its target, and the fields of its
/// body.
pub fn request(bytes: &[u8]) {
    let parsed = parse(bytes);
    if let Err(status) = parsed {
        assert!((400..=505).contains(&status), "{status}");
    }
    if let Ok(Some(head)) = &parsed {
        assert!(head.head_bytes <= bytes.len().min(HEAD_BYTES) && head.body_bytes <= BODY_BYTES, "{head:?}");
        // While the head is incomplete, the parser must report an incomplete request. It must neither refuse the
        // request nor read it as another request.
        for length in (0..head.head_bytes).rev().take(64).chain((0..head.head_bytes).step_by(97)) {
            let piece = parse(bytes.get(..length).unwrap_or_default());
            assert!(matches!(piece, Ok(None)), "{length}: {piece:?}");
        }
        let body = bytes.get(head.head_bytes..).unwrap_or_default();
        body_fields(body.get(..head.body_bytes).unwrap_or(body));
        target(&head.request.target);
    }
    target(&String::from_utf8_lossy(bytes));
    body_fields(bytes);
}

fn target(text: &str) {
    match route(text) {
        Some(Route::Database(number) | Route::Run(number) | Route::Running(number)) => assert!(number >= 0),
        Some(Route::Page(number) | Route::Acknowledge(number)) => assert!(number >= 0),
        Some(Route::Estate | Route::Style | Route::Script) | None => {}
    }
}

fn body_fields(body: &[u8]) {
    let fields = fields(body);
    assert_eq!(fields.len(), 1 + body.iter().filter(|byte| **byte == b'&').count());
    let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    // Each byte that is not valid UTF-8 becomes a replacement character, which has three bytes.
    assert!(length <= 3 * body.len(), "{length}");
}
