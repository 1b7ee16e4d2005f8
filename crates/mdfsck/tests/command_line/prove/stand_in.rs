//! A stand-in for sqlcmd and for the server behind it. It keeps a list of databases in a folder, copies, moves and removes
//! their files as a server does, and answers as the scenario wants: from a transcript, or with a check of the files.
//!
//! It accepts only the statements in the folder `prove/sql`, with the variables in front that the scripts set.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::literals::{Variables, pairs};

/// Where the stand-in keeps its state. A test that starts the scripts sets this variable.
pub(crate) const FOLDER: &str = "MDFSCK_STAND_IN";

/// The statements that change a database of the kit. own.sql stands before each of them.
const CHANGING: [&str; 5] = ["detach", "offline", "online", "emergency", "drop"];

type Answer<T> = Result<T, Box<dyn Error>>;

/// Runs the stand-in with the arguments of this process, if it was started as sqlcmd.
pub(crate) fn run_if_asked() {
    let Some(root) = std::env::var_os(FOLDER) else { return };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let status = match answer(Path::new(&root), &arguments) {
        Ok(status) => status,
        // The tests look for this word in all replies.
        Err(error) => {
            eprintln!("stand-in: {error}");
            9
        }
    };
    std::process::exit(status);
}

fn answer(root: &Path, arguments: &[String]) -> Answer<i32> {
    let value = |option: &str| {
        let at = arguments.iter().position(|argument| argument == option)?;
        arguments.get(at + 1).cloned()
    };
    for option in ["-b", "-x", "-I", "-W"] {
        if !arguments.iter().any(|argument| argument == option) {
            return Err(format!("{option} is missing in {arguments:?}").into());
        }
    }
    if value("-d").as_deref() != Some("master") || value("-s").as_deref() != Some("\t") {
        return Err(format!("-d master or -s TAB is missing in {arguments:?}").into());
    }
    let (sent, reply) = (value("-i").ok_or("-i")?, PathBuf::from(value("-o").ok_or("-o")?));
    let (step, variables) = statement(Path::new(&sent))?;
    let mut server = Server::load(root)?;
    if server.is("silent failure") && step == "restore" {
        return Ok(3);
    }
    server.say("Changed language setting to us_english.");
    let status = server.step(&step, &variables)?;
    fs::write(reply, server.said)?;
    Ok(status)
}

/// The name of a statement and its variables. The text behind the variables must be that of the kit.
fn statement(sent: &Path) -> Answer<(String, Variables)> {
    let name = sent.file_stem().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
    let step = name.ok_or("the name of the statement")?.1.to_owned();
    let text = fs::read_to_string(sent)?.trim_start_matches('\u{feff}').replace('\r', "");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prove/sql");
    let text_of = |step: &str| fs::read_to_string(folder.join(format!("{step}.sql")));
    let own = if CHANGING.contains(&step.as_str()) { text_of("own")? } else { String::new() };
    let expected = own + &text_of(&step)?;
    let (variables, rest) = super::literals::variables(&text).ok_or("the variables")?;
    if rest != expected {
        return Err(format!("{} is not {step}.sql with variables in front", sent.display()).into());
    }
    let wanted: BTreeSet<&str> = used(&expected);
    let given: BTreeSet<&str> = variables.keys().map(String::as_str).collect();
    if wanted != given {
        return Err(format!("{step}.sql uses {wanted:?}, and {given:?} are set").into());
    }
    Ok((step, variables))
}

/// The variables that a statement uses and does not declare.
fn used(statement: &str) -> BTreeSet<&str> {
    let code = statement.lines().filter(|line| !line.trim_start().starts_with("--"));
    let mut names = BTreeSet::new();
    let mut declared = BTreeSet::new();
    for line in code {
        let found = line
            .split('@')
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default());
        if line.trim_start().starts_with("DECLARE ") {
            declared.extend(found);
        } else {
            names.extend(found);
        }
    }
    // Parameters of procedures.
    &(&names - &declared) - &BTreeSet::from(["dbname", "skipchecks"])
}

struct Server {
    root: PathBuf,
    scenario: BTreeSet<String>,
    /// The first part of paths as the server has them, and where that is on this machine.
    map: Option<(String, String)>,
    said: String,
}

/// A file in a backup: logical name, type, number, and the path of the file that RESTORE writes.
type InBackup = (String, char, u32, Option<PathBuf>);

impl Server {
    fn load(root: &Path) -> Answer<Self> {
        let scenario = fs::read_to_string(root.join("scenario"))?.lines().map(str::to_owned).collect();
        let map = fs::read_to_string(root.join("map")).ok();
        let map = map.and_then(|map| map.split_once('\n').map(|(one, other)| (one.to_owned(), other.to_owned())));
        fs::create_dir_all(root.join("databases"))?;
        Ok(Self { root: root.to_owned(), scenario, map, said: String::new() })
    }

    fn is(&self, word: &str) -> bool {
        self.scenario.contains(word)
    }

    fn say(&mut self, line: &str) {
        self.said.push_str(line);
        self.said.push('\n');
    }

    /// Raises an error in the language of the server's client. sqlcmd -b ends with status 1.
    fn raise(&mut self, number: u32, level: u8, text: &str) -> i32 {
        let heading = match self.is("localised") {
            true => format!("Meldung {number}, Ebene {level}, Status 1, Server db, Zeile 1"),
            false => format!("Msg {number}, Level {level}, State 1, Server db, Line 1"),
        };
        self.say(&heading);
        self.say(text);
        1
    }

    fn replay(&mut self, transcript: &str) -> Answer<i32> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/prove/transcripts");
        self.said.push_str(&fs::read_to_string(folder.join(transcript))?);
        Ok(1)
    }

    fn step(&mut self, step: &str, variables: &Variables) -> Answer<i32> {
        let get = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
        let database = get("database");
        if CHANGING.contains(&step) {
            let Some(of) = self.database(database)? else {
                self.say("prove:state=NONE");
                return Ok(0);
            };
            let is_inside = |file: &String| spelled_alike(file).starts_with(&spelled_alike(get("folder")));
            if !database.starts_with("mdfsck_prove_") || of.files.is_empty() || !of.files.iter().all(is_inside) {
                self.say(&format!("prove:outside={}\nprove:state=FOREIGN", of.files.concat()));
                return Ok(0);
            }
        }
        match step {
            "server" => self.server(get("run")),
            "filelist" => self.filelist(get("disks"), get("position")),
            "restore" => self.restore(database, variables),
            "attach" => self.attach(database, get("files")),
            "detach" => {
                self.forget(database)?;
                self.say("prove:state=NONE");
                Ok(0)
            }
            "offline" => self.set_state(database, "OFFLINE"),
            "online" => self.set_state(database, if self.is("suspect") { "SUSPECT" } else { "ONLINE" }),
            "emergency" => self.set_state(database, "EMERGENCY"),
            "drop" => self.drop(database),
            "dbcc" => self.dbcc(database, get("command"), get("options")),
            step => Err(format!("{step}: no such step").into()),
        }
    }

    fn server(&mut self, run: &str) -> Answer<i32> {
        if self.is("login failure") {
            self.said.clear();
            self.say("Sqlcmd: Error: Microsoft ODBC Driver 18 for SQL Server : Login failed for user 'sa'..");
            return Ok(1);
        }
        if !run.starts_with("mdfsck_prove_") {
            return Err("the prefix".into());
        }
        let collation = if self.is("case-sensitive") { "Latin1_General_BIN2" } else { "Latin1_General_CI_AS" };
        let name = fs::read_to_string(self.root.join("name")).unwrap_or_else(|_| "SQL1".to_owned());
        self.say(&format!("prove:name={name}"));
        self.say("prove:version=15.0.4360.2\nprove:edition=Developer Edition (64-bit)");
        self.say(&format!("prove:collation={collation}\nprove:taken=0"));
        self.say(if self.is("no sysadmin") { "prove:sysadmin=0" } else { "prove:sysadmin=1" });
        Ok(0)
    }

    /// The files of the database in the backup.
    fn in_backup(&self) -> Answer<Vec<InBackup>> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.root.join("source"))?.map(|entry| Ok(entry?.path())).collect::<Answer<_>>()?;
        paths.sort();
        let logical = |number: u32| match self.is("odd names") {
            true => format!("Bob's [big]] data $(x) {number}"),
            false => format!("orders_{number}"),
        };
        let mut files = Vec::new();
        for (path, number) in paths.into_iter().zip([1, 3, 4, 5, 6]) {
            files.push((logical(number), 'D', number, Some(path)));
        }
        files.push((logical(2), 'L', 2, None));
        if self.is("filestream") {
            files.push(("documents".to_owned(), 'S', 65_537, None));
        }
        Ok(files)
    }

    /// What a server says about a backup that it cannot use.
    fn refuses(&mut self, disks: &str, position: &str) -> Answer<Option<i32>> {
        let disks: Vec<String> =
            pairs(disks, "DISK =", None).ok_or("the list of backups")?.into_iter().map(|(disk, _)| disk).collect();
        let expected = fs::read_to_string(self.root.join("backups"))?;
        let expected: Vec<&str> = expected.lines().collect();
        if position != "1" {
            return Err("the position".into());
        }
        if disks.iter().any(|disk| !expected.contains(&disk.as_str())) {
            let text =
                "Cannot open backup device. Operating system error 2(The system cannot find the file specified.).";
            return Ok(Some(self.raise(3201, 16, text)));
        }
        if disks.len() < expected.len() {
            let text = format!(
                "The media set has {} media families but only {} are provided. All members must be provided.",
                expected.len(),
                disks.len()
            );
            return Ok(Some(self.raise(3132, 16, &text)));
        }
        if self.is("certificate") {
            let text = "Cannot find server certificate with thumbprint '0x8AD8C0A89476752FCC3D7A9A20B0A0E5B7B8B1C4'.";
            return Ok(Some(self.raise(33_111, 16, text)));
        }
        Ok(None)
    }

    fn filelist(&mut self, disks: &str, position: &str) -> Answer<i32> {
        if let Some(status) = self.refuses(disks, position)? {
            self.raise(3013, 16, "RESTORE FILELIST is terminating abnormally.");
            return Ok(status);
        }
        let names = ["LogicalName", "PhysicalName", "Type", "FileGroupName", "Size", "MaxSize", "FileId", "CreateLSN"];
        self.say(&names.join("\t"));
        self.say(&names.map(|name| "-".repeat(name.len())).join("\t"));
        for (logical, kind, number, path) in self.in_backup()? {
            let bytes = path.map_or(Ok(1 << 20), |path| fs::metadata(path).map(|file| file.len()))?;
            let group = if kind == 'L' { "NULL" } else { "PRIMARY" };
            self.say(&format!("{logical}\tD:\\data\\{number}\t{kind}\t{group}\t{bytes}\t35184372080640\t{number}\t0"));
        }
        Ok(0)
    }

    fn restore(&mut self, database: &str, variables: &Variables) -> Answer<i32> {
        if self.is("name in use") || self.database(database)?.is_some() {
            self.say("prove:state=TAKEN");
            return Ok(0);
        }
        let get = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
        let ends = [
            (
                "newer backup",
                3169,
                "The database was backed up on a server running version 16.00.1000. That version is incompatible with this server, which is running version 15.00.4360.",
            ),
            (
                "no space",
                3257,
                "There is insufficient free space on disk volume '/' to create the database. The database requires 1073741824 additional free bytes, while only 4096 bytes are available.",
            ),
        ];
        for (word, number, text) in ends {
            if self.is(word) {
                self.raise(number, 16, text);
                self.raise(3013, 16, "RESTORE DATABASE is terminating abnormally.");
                self.say("prove:state=NONE");
                return Ok(1);
            }
        }
        if self.refuses(get("disks"), get("position"))?.is_some() {
            return Ok(1);
        }
        let moves: BTreeMap<String, String> =
            pairs(get("moves"), "MOVE", Some("TO")).ok_or("the MOVE clauses")?.into_iter().collect();
        let files = self.in_backup()?;
        if files.len() != moves.len() {
            return Err(format!("{} MOVE clauses", moves.len()).into());
        }
        let mut targets = Vec::new();
        for (logical, _, _, source) in files {
            let target = moves.get(&logical).ok_or_else(|| format!("no MOVE of {logical}"))?;
            match source {
                Some(source) => fs::copy(source, self.local(target))?,
                None => fs::write(self.local(target), vec![0; 1 << 20]).map(|()| 0)?,
            };
            targets.push(target.clone());
        }
        self.set(database, "ONLINE", &targets)?;
        self.say("prove:state=ONLINE");
        Ok(0)
    }

    fn attach(&mut self, database: &str, files: &str) -> Answer<i32> {
        let files = pairs(files, "(FILENAME =", None).ok_or("the list of files")?;
        let files: Vec<String> = files.into_iter().map(|(file, _)| file).collect();
        if let Some(missing) = files.iter().find(|file| !self.local(file).is_file()) {
            return Err(format!("{missing} is attached, but does not exist").into());
        }
        if self.database(database)?.is_some() {
            self.say("prove:state=TAKEN");
            return Ok(0);
        }
        let is_damaged = !database.ends_with("_base") && !database.ends_with("_000");
        let is_first = !self.root.join("refused").exists();
        if is_damaged && is_first && self.is("refuses to attach") {
            fs::write(self.root.join("refused"), "")?;
            if self.is("in use") {
                self.set(database, "RECOVERY_PENDING", &files)?;
            }
            return self.replay("refused.txt");
        }
        let is_suspect = is_damaged && self.is("suspect");
        let state = if is_suspect { "SUSPECT" } else { "ONLINE" };
        self.set(database, state, &files)?;
        if is_suspect {
            self.replay("suspect.txt")?;
        }
        self.say(&format!("prove:state={state}"));
        Ok(i32::from(is_suspect))
    }

    fn drop(&mut self, database: &str) -> Answer<i32> {
        if self.is("in use") && database.ends_with("_001") {
            let text = format!("Cannot drop database \"{database}\" because it is currently in use.");
            return Ok(self.raise(3702, 16, &text));
        }
        if let Some(of) = self.database(database)?.filter(|of| of.state != "OFFLINE") {
            for file in &of.files {
                fs::remove_file(self.local(file))?;
            }
        }
        self.forget(database)?;
        self.say("prove:state=NONE");
        Ok(0)
    }

    fn dbcc(&mut self, database: &str, command: &str, options: &str) -> Answer<i32> {
        let of = self.database(database)?.ok_or("the database to check")?;
        if !["ONLINE", "EMERGENCY"].contains(&of.state.as_str()) {
            self.replay("suspect.txt")?;
            self.say("prove:done");
            return Ok(1);
        }
        let files: Vec<PathBuf> =
            of.files.iter().map(|file| self.local(file)).filter(|file| !file.ends_with("log2.ldf")).collect();
        let is_damaged = !database.ends_with("_000");
        if command == "CHECKALLOC" && self.is("no CHECKALLOC") {
            self.replay("suspect.txt")?;
        } else if command != "CHECKDB" {
            let scope = format!("--{}", command.trim_start_matches("CHECK").to_lowercase());
            self.said.push_str(&check(&[scope.as_str()], &files)?);
        } else if self.is("no snapshot") && !options.contains("TABLOCK") {
            self.replay("snapshot.txt")?;
        } else if self.is("hangs") && is_damaged {
            fs::write(self.root.join("hangs"), "")?;
            std::thread::sleep(Duration::from_secs(60));
        } else if self.is("other findings") && is_damaged {
            self.replay("page-checksum.tsv")?;
        } else if self.is("cut off") && is_damaged {
            self.replay("two-pages.tsv")?;
            return self.replay("cut-off.txt");
        } else {
            if !options.starts_with("TABLERESULTS, ALL_ERRORMSGS") || options.contains("NO_INFOMSGS") != is_damaged {
                return Err(format!("CHECKDB WITH {options}").into());
            }
            let quiet: &[&str] = if is_damaged { &["--no-infomsgs"] } else { &[] };
            let rows = check(&[&["--tableresults"][..], quiet].concat(), &files)?;
            let mut rows = as_sqlcmd_prints(&rows)?;
            if self.is("excerpt") && is_damaged {
                let counts = |line: &&str| line.starts_with("8989\t") || line.starts_with("8990\t");
                rows = rows.lines().filter(|line| !counts(line)).map(|line| format!("{line}\n")).collect();
            }
            self.said.push_str(&rows);
        }
        self.say("prove:done");
        Ok(i32::from(self.is("error status")))
    }

    // ---- the list of databases ------------------------------------------------------------------------------------

    fn local(&self, path: &str) -> PathBuf {
        let Some((from, to)) = &self.map else { return PathBuf::from(path) };
        match spelled_alike(path).strip_prefix(&spelled_alike(from)) {
            // All names of the kit have small letters.
            Some(name) => PathBuf::from(format!("{to}{}", name.to_lowercase())),
            None => PathBuf::from(path),
        }
    }

    fn database(&self, name: &str) -> Answer<Option<Database>> {
        let path = self.root.join("databases").join(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(path)?;
        let (state, files) = text.split_once('\n').ok_or("the state")?;
        Ok(Some(Database { state: state.to_owned(), files: files.lines().map(str::to_owned).collect() }))
    }

    fn set(&self, name: &str, state: &str, files: &[String]) -> Answer<()> {
        let mut files = files.join("\n");
        if self.is("other spelling") {
            files = files.to_uppercase().replace('\\', "/").replace("/FILES/", "\\FILES\\\\");
        }
        if self.is("elsewhere") {
            files = files.replace("/results/", "/elsewhere/");
        }
        Ok(fs::write(self.root.join("databases").join(name), format!("{state}\n{files}\n"))?)
    }

    fn set_state(&mut self, name: &str, state: &str) -> Answer<i32> {
        let of = self.database(name)?.ok_or("the database")?;
        self.set(name, state, &of.files)?;
        self.say(&format!("prove:state={state}"));
        Ok(0)
    }

    fn forget(&self, name: &str) -> Answer<()> {
        Ok(fs::remove_file(self.root.join("databases").join(name))?)
    }
}

/// A path in one of the spellings that own.sql takes for the same.
fn spelled_alike(path: &str) -> String {
    let is_windows = path.get(1..2) == Some(":") || path.starts_with(r"\\");
    let path = path.replace('\\', "/").replace("//", "/").replace("//", "/");
    if is_windows { path.to_uppercase() } else { path }
}

struct Database {
    state: String,
    files: Vec<String>,
}

fn check(options: &[&str], files: &[PathBuf]) -> Answer<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_mdfsck")).arg("check").args(options).args(files).output()?;
    match output.status.code() {
        Some(status) if status & 4 == 0 => Ok(String::from_utf8(output.stdout)?),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// CSV in the form in which sqlcmd prints it with -W and a tab as separator.
fn as_sqlcmd_prints(rows: &str) -> Answer<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(rows.as_bytes());
    let mut text = String::new();
    for (at, record) in reader.records().enumerate() {
        let record = record?;
        let cells: Vec<&str> = record.iter().map(|cell| if cell.is_empty() { "NULL" } else { cell }).collect();
        writeln!(text, "{}", cells.join("\t"))?;
        if at == 0 {
            writeln!(text, "{}", cells.iter().map(|name| "-".repeat(name.len())).collect::<Vec<_>>().join("\t"))?;
        }
    }
    Ok(text)
}
