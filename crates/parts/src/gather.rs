//! Gathers the parts in a folder. Each task must have exactly one part.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use check::part::{Digest, verify};

use crate::error::PartsError;
use crate::folder::Folder;
use crate::head::{Head, HeadError};
use crate::plan::{Plan, Task};

/// The extension of a part's file name.
const EXTENSION: &str = "part";

/// The progress of a plan, according to the names and heads of its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The number of tasks that have a part.
    pub done: u32,
    /// The tasks without a part.
    pub missing: Vec<u32>,
    /// The total size of all parts in bytes.
    pub bytes: u64,
}

/// A part that is verified to be unchanged since its task wrote it.
#[derive(Clone, Debug)]
pub struct Part {
    /// The task of the part.
    pub task: Task,
    /// The file of the part.
    pub path: PathBuf,
}

/// One verified part for each task of a plan.
#[derive(Debug)]
pub struct Gathered {
    /// The parts, ordered by task.
    pub parts: Vec<Part>,
}

impl Folder {
    /// Returns the progress of the plan. Reads only the heads of the parts, not the sums of hashes that follow the
    /// heads.
    ///
    /// # Errors
    /// If a file is not a part of this plan.
    pub fn status<O>(&self, plan: &Plan<O>) -> Result<Status, PartsError> {
        let (mut done, mut bytes) = (vec![false; plan.tasks.len()], 0);
        for path in self.found()? {
            let Some((task, _)) = self.head(plan, &path)? else { continue };
            if let Some(done) = done.get_mut(task.id as usize) {
                *done = true;
            }
            bytes += fs::metadata(&path).map_err(PartsError::unreadable(&path))?.len();
        }
        let missing: Vec<u32> = (0..).zip(&done).filter(|(_, done)| !**done).map(|(task, _)| task).collect();
        Ok(Status { done: plan.task_count() - missing.len() as u32, missing, bytes })
    }

    /// Whether a task has a complete, unchanged part.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn has<O>(&self, plan: &Plan<O>, task: &Task) -> Result<bool, PartsError> {
        let path = self.part_path(plan, task);
        if !path.exists() {
            return Ok(false);
        }
        match self.verify(plan, &path) {
            Ok(found) => Ok(found.is_some_and(|(found, _)| found == *task)),
            Err(error) if error.is_usage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads and verifies all parts, and returns one for each task.
    ///
    /// # Errors
    /// If a file is not a part of this plan or is incomplete, a task has no part, or two parts of a task differ.
    pub fn gather<O>(&self, plan: &Plan<O>) -> Result<Gathered, PartsError> {
        let mut found: BTreeMap<u32, (Digest, Part)> = BTreeMap::new();
        for path in self.found()? {
            let Some((task, digest)) = self.verify(plan, &path)? else { continue };
            match found.get(&task.id) {
                Some((known, part)) if *known != digest => {
                    return Err(PartsError::Twice { task: task.id, one: part.path.clone(), other: path });
                }
                Some(_) => {}
                None => _ = found.insert(task.id, (digest, Part { task, path })),
            }
        }
        let missing: Vec<u32> = plan.tasks.iter().map(|task| task.id).filter(|id| !found.contains_key(id)).collect();
        match missing.is_empty() {
            true => Ok(Gathered { parts: found.into_values().map(|(_, part)| part).collect() }),
            false => Err(PartsError::Missing { path: self.path().to_owned(), missing, tasks: plan.task_count() }),
        }
    }

    /// The parts of `tasks`. Each of these tasks must have a part.
    pub fn gather_some<O>(&self, plan: &Plan<O>, tasks: impl Iterator<Item = Task>) -> Gathered {
        let part = |task: Task| Part { path: self.part_path(plan, &task), task };
        Gathered { parts: tasks.map(part).collect() }
    }

    /// Opens a part for merging. Returns the bytes that identify the part and the plan, which the hashes in the part
    /// also cover. Also returns a reader of the part's sums.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::gather`], because the part may have changed since it was gathered.
    pub fn read<O>(&self, plan: &Plan<O>, part: &Part) -> Result<(Vec<u8>, Box<dyn Read>), PartsError> {
        match self.head(plan, &part.path)? {
            Some((task, from)) if task == part.task => Ok((self.bound_to(&Head::of(plan, &task)), Box::new(from))),
            _ => Err(PartsError::part_damaged(&part.path, Some(part.task.id), "it was replaced while it was read")),
        }
    }

    /// The files with the extension of parts, sorted by name.
    fn found(&self) -> Result<Vec<PathBuf>, PartsError> {
        let folder = self.parts();
        let mut paths = Vec::new();
        for entry in fs::read_dir(&folder).map_err(PartsError::unreadable(&folder))? {
            let path = entry.map_err(PartsError::unreadable(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Reads the head of a part of this plan. Returns the task and a reader of the sums, which follow the head. Returns
    /// `None` if the part belongs to another round.
    fn head<O>(&self, plan: &Plan<O>, path: &Path) -> Result<Option<(Task, BufReader<File>)>, PartsError> {
        let foreign = |what: String| PartsError::Foreign { path: path.to_owned(), what };
        // Only regular files are opened, because opening a pipe without a writer would never return.
        if !fs::metadata(path).map_err(PartsError::unreadable(path))?.is_file() {
            return Err(foreign("is not a regular file".to_owned()));
        }
        let mut from = BufReader::new(File::open(path).map_err(PartsError::unreadable(path))?);
        let head = Head::read(&mut from).map_err(|error| match error {
            HeadError::Io(cause) => PartsError::unreadable(path)(cause),
            HeadError::NotAPart => foreign("is not a part".to_owned()),
            HeadError::Version(version) => foreign(format!("is a part of the form {version}, of another mdfsck")),
            HeadError::Damaged => PartsError::part_damaged(path, task_of(path), "its head"),
        })?;
        if head.plan != plan.plan {
            return Err(foreign("is a part of another plan".to_owned()));
        }
        if head.build != plan.build {
            return Err(foreign(format!("is a part that mdfsck {} made", head.build)));
        }
        match plan.tasks.get(head.task.id as usize) {
            _ if head.round != plan.round && round_of(path) != Some(plan.round) => Ok(None),
            Some(task) if head == Head::of(plan, task) => Ok(Some((head.task, from))),
            _ => Err(PartsError::part_damaged(path, task_of(path), "its head is not that of a task of the plan")),
        }
    }

    fn verify<O>(&self, plan: &Plan<O>, path: &Path) -> Result<Option<(Task, Digest)>, PartsError> {
        let Some((task, mut from)) = self.head(plan, path)? else { return Ok(None) };
        let bound_to = self.bound_to(&Head::of(plan, &task));
        let digest =
            verify(self.key(), &bound_to, &mut from).map_err(|error| PartsError::of_part(path, task.id, error))?;
        match from.read(&mut [0]).map_err(PartsError::unreadable(path))? {
            0 => Ok(Some((task, digest))),
            _ => Err(PartsError::part_damaged(path, Some(task.id), "bytes follow its end")),
        }
    }
}

/// The number of the round in the file name of a part.
fn round_of(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// The number of the task in the file name of a part.
fn task_of(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.split_once('-')?.1.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use check::part::frames;

    use super::*;
    use crate::folder::new_key;
    use crate::plan::{Image, PlanId, VERSION};

    /// A plan of three tasks. The text of each part names its task.
    pub(crate) fn made(path: &Path) -> (Folder, Plan<()>) {
        let task = |id| Task { id, file: 1, first: id * 128, pages: 128 };
        let plan = Plan {
            v: VERSION,
            plan: PlanId::new().unwrap(),
            build: "0.1".to_owned(),
            database: "d".to_owned(),
            image: Image { catalog: "1".to_owned(), maps: None },
            options: (),
            files: Vec::new(),
            tasks: (0..3).map(task).collect(),
            rest: Vec::new(),
            round: 0,
        };
        let folder = Folder::create(path, &plan, &new_key().unwrap(), None, None).unwrap();
        for task in &plan.tasks {
            write(&folder, &plan, task, &format!("sums of task {}", task.id));
        }
        (folder, plan)
    }

    pub(crate) fn write(folder: &Folder, plan: &Plan<()>, task: &Task, sums: &str) {
        let part = |bound_to: &[u8], to: &mut dyn std::io::Write| {
            let part = frames::wrap(folder.key(), bound_to, sums.repeat(20).as_bytes());
            to.write_all(&part).map_err(PartsError::unwritable(Path::new("part")))
        };
        folder.write(plan, task, part).unwrap();
    }

    fn refused(folder: &Folder, plan: &Plan<()>) -> String {
        let error = folder.gather(plan).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    }

    #[test]
    fn each_task_has_one_part_and_a_copy_of_it_is_no_other_one() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        assert_eq!(folder.gather(&plan).unwrap().parts.len(), 3);
        assert!(folder.status(&plan).unwrap().missing.is_empty());
        let parts = temporary.path().join("parts");
        fs::copy(parts.join("0-00001.part"), parts.join("copy.part")).unwrap();
        assert_eq!(folder.gather(&plan).unwrap().parts.len(), 3);
        // Another part of this task has different sums, as if another machine had read different pages.
        fs::rename(parts.join("copy.part"), parts.join("a.part")).unwrap();
        write(&folder, &plan, &plan.tasks[1], "other sums");
        let text = refused(&folder, &plan);
        assert!(
            text.starts_with("task 1 twice: ") && text.contains("0-00001.part and ") && text.contains("a.part differ"),
            "{text}"
        );
        fs::remove_file(parts.join("a.part")).unwrap();
        for task in [0, 2] {
            fs::remove_file(folder.part_path(&plan, &plan.tasks[task])).unwrap();
        }
        assert!(refused(&folder, &plan).starts_with("parts missing: 0,2 (2 of 3); run mdfsck task "));
        assert_eq!(
            folder.status(&plan).unwrap(),
            Status { done: 1, missing: vec![0, 2], bytes: fs::metadata(parts.join("0-00001.part")).unwrap().len() }
        );
    }

    #[test]
    fn a_part_of_another_plan_or_under_another_key_is_refused() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (folder, plan) = made(one.path());
        let (of_other, other_plan) = made(other.path());
        fs::copy(of_other.part_path(&other_plan, &other_plan.tasks[0]), folder.part_path(&plan, &plan.tasks[0]))
            .unwrap();
        assert!(refused(&folder, &plan).ends_with("0-00000.part: is a part of another plan; remove it"));
        assert!(!folder.has(&plan, &plan.tasks[0]).unwrap_or(true));
        write(&folder, &plan, &plan.tasks[0], "sums");
        assert!(folder.has(&plan, &plan.tasks[0]).unwrap());
        fs::write(one.path().join("key"), [3; 32]).unwrap();
        let (folder, plan, _) = Folder::open::<()>(one.path(), "0.1").unwrap();
        assert!(refused(&folder, &plan).contains("is damaged"));
    }

    #[test]
    fn a_part_with_any_bit_flipped_or_cut_anywhere_is_refused_and_named() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        let path = folder.part_path(&plan, &plan.tasks[1]);
        let whole = fs::read(&path).unwrap();
        let name = path.display().to_string();
        let mut random = 1u64;
        for _ in 0..1000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut flipped = whole.clone();
            let bit = (random >> 33) as usize % (8 * whole.len());
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(refused(&folder, &plan).contains(&name), "bit {bit}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(refused(&folder, &plan).contains(&name), "{length} bytes");
        }
        fs::write(&path, whole).unwrap();
        assert!(folder.gather(&plan).is_ok());
    }

    #[test]
    fn a_task_that_fails_leaves_no_part() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, plan) = made(temporary.path());
        fs::remove_file(folder.part_path(&plan, &plan.tasks[0])).unwrap();
        let failed = folder.write::<_, (), _>(&plan, &plan.tasks[0], |_, to| {
            to.write_all(b"half").unwrap();
            Err(PartsError::NoPlan { path: "p".into() })
        });
        assert!(matches!(failed, Err(PartsError::NoPlan { .. })));
        let names = fs::read_dir(temporary.path().join("parts")).unwrap().count();
        assert_eq!(names, 2, "nothing is left");
    }
}
