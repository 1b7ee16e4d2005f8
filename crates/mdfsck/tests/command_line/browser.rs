//! Looks at a page with a browser, where one is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;

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
