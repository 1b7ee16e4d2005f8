//! Random sequences of events, called stories, in a folder that a watcher observes. Backups in the folder are copied,
//! moved, overwritten, removed, damaged and repaired. A check of the present bytes of a file is the truth about the
//! file. The watcher and its history must both report this truth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trials::mutate::Random;

use crate::outcome::{Outcome, Verdict};
use crate::process::Program;
use crate::subject::folder;

/// The number of times that the watcher looks during a story.
const STEPS: usize = 6;
/// The names that files of a story may have.
const NAMES: [&str; 5] = ["a.bak", "b.bak", "c.bak", "sub/d.bak", "sub/e.bak"];
/// The maximum number of attempts to change a byte so that a check notices the change.
const TRIED: usize = 100;

/// For each existing file, whether its bytes are sound.
type Truth = BTreeMap<&'static str, bool>;

struct Story<'a> {
    program: &'a Program,
    folder: PathBuf,
    /// Two full backups of one database, the older one first. The next field has a damaged copy of each of them.
    sound: [Vec<u8>; 2],
    rotten: [Vec<u8>; 2],
    /// Whether the labels of a damaged backup name another server or database. If so, the history has a separate row
    /// for this other database.
    is_renamed: bool,
    /// The existing files. Each value has the index of the backup in the file, and whether the file is sound.
    files: BTreeMap<&'static str, (usize, bool)>,
    /// The latest verdict of the watcher on each file.
    said: BTreeMap<&'static str, String>,
    told: Vec<String>,
}

pub(super) fn trial(program: &Program, seed: u64) -> Outcome {
    let made = folder();
    let mut random = Random::new(seed);
    let mut story = match Story::begin(program, made.path(), seed % 20, &mut random) {
        Ok(story) => story,
        Err(why) => return Outcome::new("story", "its beginning", Verdict::Broke(why)),
    };
    let verdict = story.run(&mut random).map_or_else(Verdict::Broke, |()| Verdict::Kept);
    Outcome { executions: story.told.len() as u64, ..Outcome::new("story", story.told.join("; "), verdict) }
}

impl<'a> Story<'a> {
    fn begin(program: &'a Program, made: &Path, seed: u64, random: &mut Random) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let chain = made.join("chain");
        let (mut seed, mut sound) = (seed, None);
        // A story needs a backup that a check can verify completely. The watcher would report any other backup neither
        // as sound nor as corrupt.
        while sound.is_none() {
            let (path, text) = (chain.display().to_string(), seed.to_string());
            let made = program
                .run(&["lab", "chain", &path, "--sets", "full,full", "--transactions", "20", "--seed", &text])
                .end();
            if made.code != Some(0) {
                return Err(made.story());
            }
            let paths = ["01_full.bak", "02_full.bak"].map(|name| chain.join(name));
            let is_sound = |path: &PathBuf| program.run(&["check", &path.display().to_string()]).end().code == Some(0);
            if paths.iter().all(is_sound) {
                let [older, newer] = paths.map(std::fs::read);
                sound = Some([older.map_err(failed)?, newer.map_err(failed)?]);
            }
            std::fs::remove_dir_all(&chain).map_err(failed)?;
            seed += 1;
        }
        let Some(sound) = sound else { return Err("no sound backups".to_owned()) };
        std::fs::create_dir_all(made.join("in/sub")).map_err(failed)?;
        let mut story = Self {
            program,
            folder: made.to_owned(),
            rotten: sound.clone(),
            is_renamed: false,
            sound,
            files: BTreeMap::new(),
            said: BTreeMap::new(),
            told: Vec::new(),
        };
        for which in 0..2 {
            story.rotten[which] = story.rot(which, random)?;
            story.is_renamed |= story.names(&story.rotten[which])? != story.names(&story.sound[which])?;
        }
        Ok(story)
    }

    /// A copy of a backup with one changed byte that a check notices.
    fn rot(&self, which: usize, random: &mut Random) -> Result<Vec<u8>, String> {
        let path = self.folder.join("tried.bak");
        for _ in 0..TRIED {
            let mut bytes = self.sound[which].clone();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            std::fs::write(&path, &bytes).map_err(|error| error.to_string())?;
            let done = self.program.run(&["check", &path.display().to_string()]).end();
            // The check has findings, and could still read the labels.
            if matches!(done.code, Some(1 | 17)) {
                return Ok(bytes);
            }
        }
        Err("no byte was found whose change is noticed".to_owned())
    }

    /// The server name, the database name and the database ID in the labels of a backup, as far as they can be read.
    fn names(&self, bytes: &[u8]) -> Result<Option<[Value; 3]>, String> {
        let path = self.folder.join("tried.bak");
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        let done = self.program.run(&["info", "--json", &path.display().to_string()]).end();
        let line = done.stdout.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        Ok(line.map(|line| ["server", "database", "binding_id"].map(|name| line["sets"][0][name].clone())))
    }

    fn run(&mut self, random: &mut Random) -> Result<(), String> {
        for _ in 0..STEPS {
            for _ in 0..=random.below(2) {
                self.step(random)?;
            }
            self.look()?;
        }
        // At the end of the story all backups are repaired, and no trace of the damage may remain.
        for name in NAMES {
            if self.files.contains_key(name) || name == NAMES[0] {
                self.put(name, 1, true)?;
            }
        }
        self.told.push("all is put right".to_owned());
        self.look()?;
        let states = self.states()?;
        let sound = states.iter().filter(|state| *state == "sound").count();
        if sound == states.len() || self.is_renamed && sound > 0 {
            return Ok(());
        }
        let open = self.program.run(&["history", &self.at("h.db"), "findings"]).end().stdout;
        Err(format!("the history says {} although all is put right: {open}", states.join(", ")))
    }

    /// Changes a file in a random way.
    fn step(&mut self, random: &mut Random) -> Result<(), String> {
        let name = NAMES[random.below(NAMES.len())];
        let there: Vec<&'static str> = self.files.keys().copied().collect();
        let other = there.get(random.below(there.len().max(1))).copied();
        let what = match (random.below(6), other) {
            (0 | 1, _) | (_, None) => {
                let (which, is_sound) = (random.below(2), random.below(3) > 0);
                self.put(name, which, is_sound)?;
                format!("{name} is backup {which}, {}", if is_sound { "sound" } else { "rotten" })
            }
            (2, Some(other)) => {
                let (which, _) = self.files[other];
                // The file gets damaged content but keeps its size. In half of the cases, its old modification time is
                // restored. A watcher that compares only size and time would then not notice the change.
                let time = self.written(other)?;
                self.put(other, which, false)?;
                let is_put_back = random.below(2) == 0;
                if is_put_back {
                    let path = self.folder.join("in").join(other);
                    let file = std::fs::File::options().write(true).open(path).map_err(|error| error.to_string())?;
                    file.set_modified(time).map_err(|error| error.to_string())?;
                }
                format!("{other} rots{}", if is_put_back { ", and its time is put back" } else { "" })
            }
            (3, Some(other)) => {
                let (which, _) = self.files[other];
                self.put(other, which, true)?;
                format!("{other} is put right")
            }
            (4, Some(other)) if other != name => {
                let (which, is_sound) = self.files[other];
                self.put(name, which, is_sound)?;
                self.remove(other)?;
                format!("{other} is moved to {name}")
            }
            (_, Some(other)) => {
                self.remove(other)?;
                format!("{other} is removed")
            }
        };
        self.told.push(what);
        Ok(())
    }

    fn put(&mut self, name: &'static str, which: usize, is_sound: bool) -> Result<(), String> {
        let bytes = if is_sound { &self.sound[which] } else { &self.rotten[which] };
        std::fs::write(self.folder.join("in").join(name), bytes).map_err(|error| error.to_string())?;
        self.files.insert(name, (which, is_sound));
        Ok(())
    }

    /// The modification time of a file.
    fn written(&self, name: &str) -> Result<std::time::SystemTime, String> {
        let metadata = std::fs::metadata(self.folder.join("in").join(name));
        metadata.and_then(|metadata| metadata.modified()).map_err(|error| error.to_string())
    }

    fn remove(&mut self, name: &'static str) -> Result<(), String> {
        std::fs::remove_file(self.folder.join("in").join(name)).map_err(|error| error.to_string())?;
        self.files.remove(name);
        // Earlier verdicts do not apply to a new file of the same name.
        self.said.remove(name);
        Ok(())
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Runs the watcher. Its latest verdict on each file must be right.
    fn look(&mut self) -> Result<(), String> {
        let (watched, history) = (self.at("in"), self.at("h.db"));
        let done =
            self.program.run(&["watch", &watched, "--history", &history, "--once", "--settle", "1s", "--json"]).end();
        if !done.is_orderly() || done.code.is_none_or(|code| code & 12 != 0) {
            return Err(done.story());
        }
        for line in done.stdout.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let path = line["paths"][0].as_str().unwrap_or_default();
            let status = line["status"].as_str().unwrap_or_default();
            if let Some(name) = NAMES.iter().find(|name| path.ends_with(&format!("/in/{name}")))
                && status != "skipped"
            {
                self.said.insert(name, status.to_owned());
            }
        }
        let truth: Truth = self.files.iter().map(|(name, (_, is_sound))| (*name, *is_sound)).collect();
        for (name, is_sound) in &truth {
            let expected = if *is_sound { "sound" } else { "corrupt" };
            match self.said.get(name).map(String::as_str) {
                Some(said) if said == expected => {}
                said => {
                    return Err(format!("{name} is {expected}, and the watcher says {}", said.unwrap_or("nothing")));
                }
            }
        }
        let states = self.states()?;
        if truth.values().any(|is_sound| !is_sound) && !states.iter().any(|state| state == "corrupt") {
            return Err(format!("a rotten file is there, and the history says {}", states.join(", ")));
        }
        Ok(())
    }

    /// The states of all databases in the history. If the damaged labels of a file name another database, that database
    /// has a separate row, which stays corrupt after the file is repaired.
    fn states(&self) -> Result<Vec<String>, String> {
        let done = self.program.run(&["history", &self.at("h.db"), "--json"]).end();
        let state = |line: &str| {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            Ok(line["state"].as_str().unwrap_or_default().to_owned())
        };
        done.stdout.lines().map(state).collect()
    }
}
