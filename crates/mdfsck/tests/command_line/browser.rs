//! Shows pages in a browser, if one is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::{Value, json};

/// Names of programs that accept the options of Chromium.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// Options that make the browser run without a window, without background network traffic, and without the profile of
/// the user.
#[rustfmt::skip]
const OPTIONS: [&str; 8] = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
];

pub(crate) struct Browser(PathBuf);

impl Browser {
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let programs = std::env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
        programs.into_iter().find(|program| program.is_file()).map(Self)
    }
}

/// A running browser that shows one page at a time and evaluates expressions in it.
pub(crate) struct Session {
    browser: std::process::Child,
    asked: u64,
    received: Vec<u8>,
    session: Option<String>,
    /// The errors in the browser's console since the current page was shown.
    pub(crate) complaints: Vec<String>,
    /// The requests of the browser since the current page was shown, including the request for the page.
    pub(crate) requests: Vec<String>,
}

impl Session {
    pub(crate) fn open(browser: &Browser, folder: &Path) -> Result<Self, Failed> {
        use std::process::Stdio;
        // The browser reads commands from file descriptor 3 and writes answers to file descriptor 4.
        let browser = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1 </dev/null"])
            .arg(&browser.0)
            .args(OPTIONS)
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut own = Self {
            browser,
            asked: 0,
            received: Vec::new(),
            session: None,
            complaints: Vec::new(),
            requests: Vec::new(),
        };
        let target = own.call("Target.createTarget", json!({"url": "about:blank"}))?["targetId"].clone();
        let attached = own.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}))?;
        own.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            own.call(domain, json!({}))?;
        }
        // Makes the page behave as if its window had the focus.
        own.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}))?;
        Ok(own)
    }

    /// Shows `url` on a screen that is `width` pixels wide, in light or dark mode.
    pub(crate) fn show(&mut self, url: &str, (width, is_dark): (u32, bool)) -> Result<(), Failed> {
        self.call("Page.navigate", json!({"url": "about:blank"}))?;
        self.value("location.href === 'about:blank' || null")?;
        (self.complaints, self.requests) = (Vec::new(), Vec::new());
        let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", screen)?;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media)?;
        self.call("Page.navigate", json!({"url": url}))?;
        self.value("location.href !== 'about:blank' && document.readyState === 'complete' || null")?;
        Ok(())
    }

    /// Presses a key, such as `Tab` or `Enter`.
    pub(crate) fn press(&mut self, key: &str) -> Result<(), Failed> {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            key => return Err(format!("{key}: its code is not known").into()),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Failed> {
        use std::io::Write;
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let input = self.browser.stdin.as_mut().ok_or("no input")?;
        input.write_all(format!("{message}\0").as_bytes())?;
        input.flush()?;
        loop {
            let answer = self.receive()?;
            if answer["id"] == self.asked {
                return Ok(answer["result"].clone());
            }
            let method = answer["method"].as_str().unwrap_or_default();
            if ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"].contains(&method) {
                self.complaints.push(answer["params"].to_string());
            }
            if method == "Network.requestWillBeSent" {
                self.requests.push(answer["params"]["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
        }
    }

    fn receive(&mut self) -> Result<Value, Failed> {
        use std::io::Read;
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(serde_json::from_slice(&message[..end])?);
            }
            let mut piece = [0; 1 << 14];
            let read = self.browser.stdout.as_mut().ok_or("no output")?.read(&mut piece)?;
            if read == 0 {
                return Err("the browser has ended".into());
            }
            self.received.extend_from_slice(&piece[..read]);
        }
    }

    /// Evaluates an expression in the page, again and again, until its value is not null.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value, Failed> {
        for _ in 0..200 {
            let asked = json!({"expression": expression, "returnByValue": true});
            let answer = self.call("Runtime.evaluate", asked)?;
            let value = &answer["result"]["value"];
            if !value.is_null() && answer["exceptionDetails"].is_null() {
                return Ok(value.clone());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Err(format!("{expression}: nothing").into())
    }

    /// Clicks on the first link that `selector` selects, and waits until the page behind it is complete. A page that is
    /// still being received has elements without their text.
    pub(crate) fn follow(&mut self, selector: &str) -> Result<(), Failed> {
        let selector = json!(selector);
        self.value(&format!("(window.isLeft = true, document.querySelector({selector}).click(), true)"))?;
        self.value("!window.isLeft && document.readyState === 'complete' || null")?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
