//! Tests that the published table is correct and up to date.

use expr::table::{CONVERSIONS, FUNCTIONS, OPERATORS, markdown, show};

#[test]
fn every_example_gives_its_result() {
    let mut wrong = Vec::new();
    for feature in [OPERATORS, FUNCTIONS, CONVERSIONS].concat() {
        let found = show(feature.example);
        if found != feature.result {
            wrong.push(format!("{}: {} gives {found}, not {}", feature.form, feature.example, feature.result));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_document_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/expressions.md");
    let document = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        document.replace("\r\n", "\n") == markdown(),
        "cargo run -p mdfsck-expr --example table > docs/expressions.md"
    );
}
