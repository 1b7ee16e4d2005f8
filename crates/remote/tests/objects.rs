//! Reads objects like files on a disk, from a server with faults.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use remote::{MOST_HELD_BYTES, Objects, Settings};
use server::{Content, Line, Server};
use source::storage::{Kind, Object, ObjectStorage};

const MB: u64 = 1 << 20;

fn objects() -> Objects {
    Objects::new(Settings::default())
}

/// A server with one object, and the URL of the object.
fn with_object(content: Content) -> (Server, String) {
    let server = Server::start();
    server.put("/b/sales.bak", content);
    let url = format!("{}/b/sales.bak", server.url());
    (server, url)
}

/// Reads a part of an object as callers do: `read_at` is repeated until the part is complete.
fn read(object: &dyn Object, from: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let (mut bytes, mut done) = (vec![0; length], 0);
    while done < length {
        match object.read_at(&mut bytes[done..], from + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn text_of(result: std::io::Result<impl Sized>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_is_forgotten_is_looked_up_again_and_what_is_open_stays() {
    let (server, url) = with_object(Content::Pattern(MB));
    let (all, missing) = (objects(), format!("{}/b/later.bak", server.url()));
    let length = |url: &str| match all.open(url) {
        Ok(object) => Some(object.length()),
        // The server has no object with this name.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{url}: {error}"),
    };
    let open = all.open(&url).unwrap();
    assert_eq!((length(&url), length(&missing)), (Some(MB), None));
    server.put("/b/sales.bak", Content::Pattern(2 * MB));
    server.put("/b/later.bak", Content::Pattern(3 * MB));
    assert_eq!((length(&url), length(&missing)), (Some(MB), None), "each is looked up once");
    all.forget();
    assert_eq!((length(&url), length(&missing)), (Some(MB), Some(3 * MB)), "one is open");
    drop(open);
    all.forget();
    assert_eq!((length(&url), length(&missing)), (Some(2 * MB), Some(3 * MB)));
}

#[test]
fn an_object_is_read_like_a_file() {
    let content = Content::Pattern(40 * MB + 17);
    let (server, url) = with_object(content.clone());
    let object = objects().open(&url).unwrap();
    assert_eq!(object.length(), 40 * MB + 17);
    assert_eq!(server.requests().len(), 1, "one request opens it");
    for (from, length) in [(0, 8192), (3 * MB + 5, 100_000), (39 * MB, 3 << 20), (40 * MB + 16, 10), (41 * MB, 10)] {
        let end = (from + length as u64).min(object.length());
        assert!(read(&*object, from, length).unwrap() == content.part(from.min(end)..end), "{from}");
    }
}

#[test]
#[ignore = "full tier: takes seconds"]
fn many_threads_read_the_same_bytes_through_faults() {
    let content = Content::Pattern(64 * MB);
    let (server, url) = with_object(content.clone());
    server.set_line(Line { latency: Duration::from_millis(2), busy: 10, cut: 5, ..Line::default() });
    let object: Arc<dyn Object> =
        Objects::new(Settings { held_bytes: 16 * MB, ..Settings::default() }).open(&url).unwrap();
    let (object, content) = (&object, &content);
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                for chunk in (number..64).step_by(4) {
                    let from = chunk * MB;
                    object.prefetch(from + 8 * MB, MB);
                    assert!(read(&**object, from, 1 << 20).unwrap() == content.part(from..from + MB), "{chunk}");
                }
            });
        }
        // Another thread reads scattered pages at the same time.
        scope.spawn(move || {
            for page in (0..8192).step_by(97) {
                let from = page * 5003 % 8191 * 8192;
                assert!(read(&**object, from, 8192).unwrap() == content.part(from..from + 8192), "{page}");
            }
        });
    });
}

#[test]
fn each_request_names_the_tag_and_scattered_pages_are_small_requests() {
    let (server, url) = with_object(Content::Pattern(1000 * MB));
    let object = objects().open(&url).unwrap();
    server.forget();
    for page in 1..10 {
        read(&*object, page * 100 * MB, 8192).unwrap();
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 9);
    for request in &requests {
        let range = request.range.clone().unwrap();
        assert!(request.if_match.as_deref() == Some("\"tag-0\"") && range.end - range.start <= 64 << 10, "{request:?}");
    }
    // Consecutive reads use large requests, and no byte is requested twice.
    server.forget();
    for chunk in 0..64 {
        read(&*object, 300 * MB + chunk * MB, 1 << 20).unwrap();
    }
    let mut asked: Vec<_> = server.requests().into_iter().filter_map(|request| request.range).collect();
    asked.sort_by_key(|range| range.start);
    assert!(asked.windows(2).all(|two| two[0].end <= two[1].start), "{asked:?}");
    let end = asked.last().unwrap().end;
    // An earlier scattered read of this test already requested the first 64 KB of this range, so the first request
    // begins after them.
    assert!(
        asked[0].start == 300 * MB + (64 << 10) && end <= (300 + 64) * MB + MOST_HELD_BYTES && asked.len() < 48,
        "{asked:?}"
    );
}

#[test]
fn with_failing_requests_no_byte_is_sent_twice() {
    const SIZE: u64 = 256 * MB;
    let (server, url) = with_object(Content::Pattern(SIZE));
    let object = Objects::new(Settings { held_bytes: 64 * MB, ..Settings::default() }).open(&url).unwrap();
    server.set_line(Line { latency: Duration::from_millis(5), rate: 40_000_000, busy: 10, cut: 5 });
    server.forget();
    let next = AtomicU64::new(0);
    let read_all = || {
        loop {
            let from = next.fetch_add(MB, Ordering::Relaxed);
            if from >= SIZE {
                break;
            }
            // The reads end at arbitrary offsets, like reads of a backup's records.
            for (at, length) in [(from, 300_001), (from + 300_001, MB as usize - 300_001)] {
                assert_eq!(read(&*object, at, length).unwrap()[0], (at / 4096 % 251) as u8, "{at}");
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(read_all)));
    // After a cut-off answer, only the bytes that did not arrive are requested again. Opening the object already read
    // up to 1 MB of its start.
    let sent = server.sent();
    assert!((SIZE - MB..=SIZE + SIZE / 64).contains(&sent), "{sent} of {SIZE}");
}

#[test]
fn what_gives_access_never_leaves_the_server_it_was_given_for() {
    let (other, there) = with_object(Content::Pattern(MB));
    let server = Server::start();
    let shown = format!("{}/b/link.bak", server.url());
    // Both servers are on this machine. The name `localhost` makes the second one look like another server.
    let there = there.replace("127.0.0.1", "localhost");
    server.redirect("/b/link.bak", &there);
    let open = |redirects: &[&str]| {
        let secrets = BTreeMap::from([(shown.clone(), format!("{shown}?sv=1&sig=TOPSECRET"))]);
        let redirects = redirects.iter().map(|host| (*host).to_owned()).collect();
        Objects::new(Settings { secrets, redirects, ..Settings::default() }).open(&shown)
    };
    let refused = text_of(open(&[]));
    assert!(
        refused.contains("another server, localhost; ") && refused.contains("MDFSCK_REDIRECT_TO=localhost"),
        "{refused}"
    );
    assert!(text_of(open(&["else.example"])).contains("another server"));
    assert!(other.requests().is_empty(), "it was not asked");
    let object = open(&["localhost"]).unwrap();
    assert_eq!(object.length(), MB);
    let asked = other.requests();
    assert!(!asked.is_empty() && asked.iter().all(|request| request.query.is_empty()), "{asked:?}");
    assert!(asked.iter().all(|request| !format!("{request:?}").contains("TOPSECRET")), "{asked:?}");
    assert!(asked.iter().all(|request| !request.headers.to_lowercase().contains("referer")), "{asked:?}");
    // Redirects to the same server are followed.
    server.put("/b/sales.bak", Content::Pattern(2 * MB));
    server.redirect("/b/link.bak", "/b/sales.bak");
    assert_eq!(open(&[]).unwrap().length(), 2 * MB);
}

#[test]
fn an_object_that_is_overwritten_is_an_error_and_never_a_mixture() {
    for tag in ["\"other\"", "W/\"weak\""] {
        let server = Server::start();
        let old = if tag.starts_with('W') { "W/\"old\"" } else { "\"old\"" };
        server.put_tagged("/b/x.bak", Content::Bytes(Arc::new(vec![1; 4 << 20])), old);
        let object = objects().open(&format!("{}/b/x.bak", server.url())).unwrap();
        server.put_tagged("/b/x.bak", Content::Bytes(Arc::new(vec![2; 4 << 20])), tag);
        let bytes = read(&*object, 0, 8192).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 1), "what was read at the start");
        let text = text_of(read(&*object, 2 * MB, 8192));
        assert!(text.starts_with("the object was overwritten while it was read"), "{text}");
        server.forget();
        assert!(read(&*object, 3 * MB, 8192).is_err());
        // A request would have arrived within this time.
        thread::sleep(Duration::from_millis(100));
        assert!(server.requests().is_empty(), "it stays so, without a request");
    }
}

#[test]
fn an_object_is_looked_up_once_and_an_empty_one_is_empty() {
    let (server, url) = with_object(Content::Bytes(Arc::default()));
    let objects = objects();
    assert_eq!(objects.kind(&url).unwrap(), Kind::File { bytes: 0 });
    let asked = server.requests().len();
    assert_eq!(objects.open(&url).unwrap().length(), 0);
    assert_eq!(objects.kind(&url).unwrap(), Kind::File { bytes: 0 });
    assert_eq!(server.requests().len(), asked);
}

#[test]
#[ignore = "full tier: takes seconds"]
fn what_cannot_be_read_says_why_in_one_line_without_a_secret() {
    let (server, url) = with_object(Content::Pattern(MB));
    server.require("sig=GOODSECRET");
    let with = |query: &str| {
        let secrets = BTreeMap::from([(url.clone(), format!("{url}?{query}"))]);
        Objects::new(Settings { secrets, ..Settings::default() })
    };
    assert!(with("sv=1&sig=GOODSECRET").open(&url).is_ok());
    let denied = text_of(with("sv=1&sig=WRONGSECRET").open(&url));
    assert!(
        denied.starts_with("access is denied (403 AuthenticationFailed); the signature in the URL may"),
        "{denied}"
    );
    let missing = format!("{url}2");
    let text = text_of(with("sig=GOODSECRET").open(&missing));
    assert!(text.starts_with("access is denied (403"), "another URL has not this query: {text}");
    server.require("");
    let nothing = text_of(objects().open(&missing));
    assert_eq!(nothing, "no object has this name (404 NoSuchKey); check the spelling");
    server.send_whole();
    let whole = text_of(objects().open(&url));
    assert!(whole.starts_with("the server does not support range requests"), "{whole}");
    let nobody = text_of(objects().open("http://127.0.0.1:1/x.bak?"));
    assert!(nobody.contains("the storage cannot be reached") && nobody.contains("refused"), "{nobody}");
    for text in [denied, text, nothing, whole, nobody] {
        assert!(!text.contains("SECRET") && !text.contains('\n'), "{text}");
    }
}
