use super::*;

#[test]
fn printed_text_is_text_in_a_page() {
    let text = "</pre><script>alert(1)</script>\n\u{202e}x\0\n".repeat(2);
    let page = String::from_utf8(plain("<img src=x>", "/database/1'x", &["<b>"], &text)).unwrap();
    assert!(!page.contains("<img") && !page.contains("<script>") && !page.contains("<b>") && !page.contains("1'x"));
    assert!(page.contains("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;\n\\u{202e}x\\u{0}"), "{page}");
    assert_eq!(page.matches("</pre>").count(), 1);
    assert!(!page.contains("<script"), "nothing to fill");
}

#[test]
fn what_a_server_sends_beside_its_pages_loads_nothing_from_elsewhere() {
    for text in [style(), script()] {
        for loads in ["http://", "https://", "url(", "@import", "innerHTML", "eval(", "fetch("] {
            assert!(!text.contains(loads), "{loads}");
        }
        assert!(!text.contains("</"), "it could end its element in a file");
    }
}

#[test]
fn json_of_a_page_begins_no_tag() {
    let mut out = Vec::new();
    push(&mut out, "{\"a\":", &["</script><!--"]);
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":["\u003c/script>\u003c!--"]"#);
}
