//! Looks at a page with a browser, where one is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::{Value, json};

/// Programs that take the options of Chromium.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// No window, no network, nothing of the user's.
#[rustfmt::skip]
const OPTIONS: [&str; 8] = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
];

pub(crate) struct Browser(PathBuf);

/// What a page looks like.
pub(crate) struct Look {
    /// Pixels that it needs.
    pub(crate) width: u32,
    pub(crate) background: String,
    pub(crate) ink: String,
}

impl Browser {
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let programs = std::env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
        programs.into_iter().find(|program| program.is_file()).map(Self)
    }

    /// Shows `page` in a frame that is `width` pixels wide, on a light or a dark screen. A window itself cannot be as narrow.
    pub(crate) fn look(&self, folder: &Path, page: &str, width: u32, is_dark: bool) -> Result<Look, Failed> {
        let asked = "[page.documentElement.scrollWidth,getComputedStyle(page.body).backgroundColor,\
                     getComputedStyle(page.body).color]";
        let (seen, _) = self.ask(folder, page, (width, is_dark), ("true", asked))?;
        match seen.split('|').collect::<Vec<_>>()[..] {
            [width, background, ink] => {
                Ok(Look { width: width.parse()?, background: background.to_owned(), ink: ink.to_owned() })
            }
            _ => Err(format!("{seen}?").into()),
        }
    }

    /// The same; what the list `asked` has of the document `page` once `is_ready`, and what the browser complained about.
    pub(crate) fn ask(
        &self,
        folder: &Path,
        page: &str,
        (width, is_dark): (u32, bool),
        (is_ready, asked): (&str, &str),
    ) -> Result<(String, Vec<String>), Failed> {
        let scheme = if is_dark { "dark" } else { "light" };
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        let around = format!(
            "<!doctype html><iframe style='border:0;color-scheme:{scheme}' width={width} height=800 srcdoc=\"{page}\"></iframe>\
             <pre></pre><script>const seen=()=>{{const page=document.querySelector('iframe').contentDocument;\
             if(!({is_ready}))return setTimeout(seen,50);\
             document.querySelector('pre').textContent='seen|'+({asked}).join('|')}};onload=seen</script>"
        );
        let (around_path, profile) = (folder.join("around.html"), folder.join("profile"));
        fs::write(&around_path, around)?;
        let output = Command::new(&self.0)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(["--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"])
            .arg(format!("file://{}", around_path.display()))
            .output()?;
        let dom = String::from_utf8_lossy(&output.stdout);
        let seen = dom.rsplit_once("<pre>seen|").and_then(|(_, seen)| seen.split_once("</pre>"));
        let complaints = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<String> =
            complaints.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
        match seen {
            Some((seen, _)) => Ok((seen.to_owned(), complaints)),
            None => Err(format!("the browser shows no page: {complaints:?}").into()),
        }
    }
}

/// A browser that is asked again and again about one page of a server.
#[cfg(unix)]
pub(crate) struct Session {
    browser: std::process::Child,
    asked: u64,
    received: Vec<u8>,
    session: Option<String>,
    /// What the browser complained about.
    pub(crate) complaints: Vec<String>,
}

#[cfg(unix)]
impl Session {
    /// Opens `url` on a screen that is `width` pixels wide, light or dark.
    pub(crate) fn open(
        browser: &Browser,
        folder: &Path,
        url: &str,
        (width, is_dark): (u32, bool),
    ) -> Result<Self, Failed> {
        use std::process::Stdio;
        // The browser reads commands from descriptor 3 and answers on 4.
        let browser = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1 </dev/null"])
            .arg(&browser.0)
            .args(OPTIONS)
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", folder.join(format!("profile-{width}-{is_dark}")).display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut own = Self { browser, asked: 0, received: Vec::new(), session: None, complaints: Vec::new() };
        let target = own.call("Target.createTarget", json!({"url": "about:blank"}))?["targetId"].clone();
        let attached = own.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}))?;
        own.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            own.call(domain, json!({}))?;
        }
        let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        own.call("Emulation.setDeviceMetricsOverride", screen)?;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        own.call("Emulation.setEmulatedMedia", media)?;
        own.call("Page.navigate", json!({"url": url}))?;
        Ok(own)
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

    /// The value of an expression in the page, once it is not null.
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
}

#[cfg(unix)]
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
