//! Tests of `mdfsck check --window` with files in object storage.

use super::*;

/// The beginnings of JSON lines that are not compared, because only a check with a window prints them or because they
/// differ between runs.
const OF_WINDOW: [&str; 4] =
    [r#"{"kind":"window""#, r#"{"kind":"statistics""#, r#"{"kind":"summary""#, r#"{"kind":"run""#];

/// Runs a check in a window that reads at most two ranges.
fn window(paths: &[String], history: &Path, environment: &[(&str, &str)]) -> Output {
    let history = history.display().to_string();
    let options = ["--json", "--history", &history, "--window", "1h", "--range", "1MB", "--most-ranges", "2"];
    run(&["check"], paths, &options, environment)
}

fn line(output: &Output) -> serde_json::Value {
    let stdout = text(&output.stdout);
    let line = stdout.lines().rev().find(|line| line.starts_with(OF_WINDOW[0]));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no line: {}", text(&output.stderr)))).unwrap()
}

fn results(output: &Output) -> Vec<String> {
    let is_of_window = |line: &&str| OF_WINDOW.iter().any(|start| line.starts_with(start));
    text(&output.stdout).lines().filter(|line| !is_of_window(line)).map(str::to_owned).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let below = |entry: PathBuf| if entry.is_dir() { files_below(&entry) } else { vec![entry] };
    fs::read_dir(folder).unwrap().flat_map(|entry| below(entry.unwrap().path())).collect()
}

pub(super) fn has_secret(path: &Path) -> bool {
    fs::read(path).unwrap().windows(9).any(|part| part == b"TOPSECRET")
}

/// Runs windows until the image is closed. Returns the output of the last window, and the number of windows.
fn close(paths: &[String], history: &Path, environment: &[(&str, &str)]) -> (Output, u32) {
    for count in 1..100 {
        let output = window(paths, history, environment);
        let line = line(&output);
        if line["done"]["is_closed"] == true {
            return (output, count);
        }
        let kept = files_below(&history.with_file_name("h.db.parts"));
        assert!(!kept.is_empty() && kept.iter().all(|path| !has_secret(path)), "{kept:?}");
        assert!(line["done"]["ranges"] == 2 || line["done"]["is_fixed"] == false, "{line}");
    }
    panic!("never closed");
}

#[test]
fn windows_go_on_with_objects_in_every_form() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    let out = tempfile::tempdir().unwrap();
    for (number, (form, names)) in sample.forms.iter().enumerate() {
        let history = out.path().join(number.to_string());
        fs::create_dir(&history).unwrap();
        let expected = sample.expected(names, &["--json"]);
        let (last, count) = close(&urls("s3://sql/backups/", names), &history.join("h.db"), &s3(&url));
        assert!(results(&last) == results(&expected), "{form}: {}", text(&last.stderr));
        assert_eq!(bits(&last), bits(&expected), "{form}");
        assert!(count > 1, "{form}: more than one window");
    }
    // The query of a link (its part after `?`) may change every night.
    let history = out.path().join("h.db");
    let linked = |night: u32| [format!("{url}/sql/backups/plain.bak?night={night}&sig=TOPSECRETSIG")];
    server.require("sig=TOPSECRETSIG");
    let first = line(&window(&linked(1), &history, &[]));
    let second = line(&window(&linked(2), &history, &[]));
    assert!(files_below(out.path()).iter().all(|path| !has_secret(path)), "neither history nor plan holds a secret");
    let done = |line: &serde_json::Value| line["done"]["image_bytes_done"].as_u64().unwrap();
    assert!(done(&second) > done(&first), "{first}\n{second}");
}

#[test]
fn windows_start_over_where_an_object_may_be_another_one() {
    let sample = Sample::new();
    let server = sample.served();
    let url = server.url();
    let out = tempfile::tempdir().unwrap();
    let history = out.path().join("h.db");
    let path = "/sql/backups/plain.bak";
    let backup = ["s3://sql/backups/plain.bak".to_owned()];
    let content = || Content::Bytes(Arc::new(sample.bytes("plain.bak")));
    let done = |output: &Output| line(output)["done"]["image_bytes_done"].as_u64().unwrap();
    let first = done(&window(&backup, &history, &s3(&url)));
    assert!(done(&window(&backup, &history, &s3(&url))) > first);
    // Writes the object again with the same bytes. The object gets another entity tag, so a new image must begin.
    server.put_tagged(path, content(), "\"other\"");
    let other = window(&backup, &history, &s3(&url));
    assert!(text(&other.stderr).contains("begins a new image"), "{}", text(&other.stderr));
    assert_eq!(done(&other), first);
    // Two versions of an object with different bytes may have the same weak entity tag. A weak tag therefore does not
    // prove that the object is unchanged, and each window must begin a new image.
    server.put_tagged(path, content(), "W/\"weak\"");
    for _ in 0..2 {
        let weak = window(&backup, &history, &s3(&url));
        let line = line(&weak);
        assert!(line["done"]["is_fixed"] == false && done(&weak) == first, "{line}");
    }
}
