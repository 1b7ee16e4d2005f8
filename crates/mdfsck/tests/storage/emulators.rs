//! Tests with emulators by other authors: moto for S3, and Azurite for Azure. If an emulator is not installed, its test
//! is skipped with a message. If MDFSCK_REQUIRE names the emulator, the test fails instead.
//!
//! `MDFSCK_MOTO` is the path of moto's `moto_server`, and `MDFSCK_AZURITE` the path of Azurite's `azurite-blob`.
//! Without these variables, the programs on the PATH are used.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use trials::tools;

use super::{Sample, is_same, run, s3, text, urls};

/// A running emulator. It is stopped when the test ends.
struct Emulator {
    child: Child,
    port: u16,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Emulator {
    /// Starts the emulator; `None` if it is not installed.
    fn start(tool: &str, variable: &str, name: &str, arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        let program = std::env::var(variable).unwrap_or_else(|_| name.to_owned());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let started = Command::new(&program).args(arguments(port)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(child) = started else {
            tools::skip(tool, &format!("{program} is not installed; {variable} names it elsewhere"));
            return None;
        };
        let this = Self { child, port };
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(this);
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("{program} does not answer");
    }

    /// Sends a request. Fails the test if the request does not succeed.
    fn send(&self, method: &str, target: &str, headers: &str, body: &[u8]) {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
            self.port,
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{method} {target}: {answer}");
    }
}

#[test]
fn moto_gives_the_answer_of_the_disk() {
    let port = |port: u16| ["-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned).to_vec();
    let Some(moto) = Emulator::start("moto", "MDFSCK_MOTO", "moto_server", port) else { return };
    let sample = Sample::new();
    moto.send("PUT", "/sql", "", b"");
    for name in sample.names() {
        moto.send("PUT", &format!("/sql/backups/{name}"), "", &sample.bytes(name));
    }
    let url = format!("http://127.0.0.1:{}", moto.port);
    // Moto accepts requests for any bucket only in the region us-east-1.
    let mut environment = s3(&url);
    environment[3].1 = "us-east-1";
    for (form, names) in &sample.forms {
        let found = run(&["check"], &urls("s3://sql/backups/", names), &[], &environment);
        is_same(&sample.expected(names, &[]), &found, form);
    }
    let chain = run(&["chain"], &["s3://sql/backups".to_owned()], &[], &environment);
    assert!(text(&chain.stdout).contains("s3://sql/backups"), "{} {}", text(&chain.stdout), text(&chain.stderr));
    let missing = run(&["info"], &["s3://sql/none.bak".to_owned()], &[], &environment);
    assert!(
        missing.status.code() == Some(4) && text(&missing.stderr).contains("404 NoSuchKey"),
        "{}",
        text(&missing.stderr)
    );
}

/// A script for Node that signs a shared access signature for Azurite's only account. Node is always installed together
/// with Azurite.
const SAS: &str = r#"
const key = Buffer.from('Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==', 'base64');
const [sp, ss, srt, se, sv] = ['rwlac', 'b', 'sco', '2099-01-01T00:00:00Z', '2021-08-06'];
const text = ['devstoreaccount1', sp, ss, srt, '', se, '', '', sv, '', ''].join('\n');
const sig = require('crypto').createHmac('sha256', key).update(text, 'utf8').digest('base64');
console.log(new URLSearchParams({sv, ss, srt, sp, se, sig}).toString());
"#;

#[test]
fn azurite_gives_the_answer_of_the_disk() {
    let port = |port: u16| {
        let port = port.to_string();
        let words = [
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            &port,
            "--silent",
            "--skipApiVersionCheck",
            "--inMemoryPersistence",
        ];
        words.map(str::to_owned).to_vec()
    };
    let Some(azurite) = Emulator::start("azurite", "MDFSCK_AZURITE", "azurite-blob", port) else { return };
    let sas = Command::new("node").args(["-e", SAS]).output().unwrap();
    let sas = text(&sas.stdout).trim().to_owned();
    let sample = Sample::new();
    let account = "/devstoreaccount1";
    azurite.send("PUT", &format!("{account}/sql?restype=container&{sas}"), "x-ms-version: 2021-08-06\r\n", b"");
    for name in sample.names() {
        let headers = "x-ms-version: 2021-08-06\r\nx-ms-blob-type: BlockBlob\r\n";
        azurite.send("PUT", &format!("{account}/sql/backups/{name}?{sas}"), headers, &sample.bytes(name));
    }
    let url = format!("http://127.0.0.1:{}", azurite.port);
    let environment = [("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", url.as_str())];
    for (form, names) in &sample.forms {
        let expected = sample.expected(names, &[]);
        is_same(&expected, &run(&["check"], &urls("az://sql/backups/", names), &[], &environment), form);
        let links: Vec<String> = names.iter().map(|name| format!("{url}{account}/sql/backups/{name}?{sas}")).collect();
        is_same(&expected, &run(&["check"], &links, &[], &[]), form);
    }
    let chain = run(&["chain"], &["az://sql/backups".to_owned()], &[], &environment);
    assert!(text(&chain.stdout).contains("az://sql/backups"), "{} {}", text(&chain.stdout), text(&chain.stderr));
    let denied = format!("{url}{account}/sql/backups/plain.bak?{}", sas.replace("sig=", "sig=x"));
    let denied = run(&["info"], &[denied], &[], &[]);
    let said = text(&denied.stderr);
    assert!(
        denied.status.code() == Some(4) && said.contains("access is denied (403") && !said.contains("sig="),
        "{said}"
    );
}
