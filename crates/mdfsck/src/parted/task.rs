//! `mdfsck task`: runs tasks of a plan.

use jobs::failure::Failure;
use jobs::spread::Opened;
use jobs::tasks::Work;
use parts::Ids;

use super::eof;
use crate::cli::TaskArguments;
use crate::one::set_up;
use crate::progress;

pub(crate) fn run(arguments: &TaskArguments) -> Result<u8, Failure> {
    if arguments.until_eof {
        eof::watch();
    }
    let opened = Opened::open(&arguments.folder)?;
    let ids = arguments.ids.iter().map(|text| Ids::parse(text, |name| std::env::var(name).ok()));
    let work = Work::of(&opened)?;
    let ids = Ids::among(&ids.collect::<Result<Vec<_>, _>>()?, work.plan.task_count())?;
    let check = opened.request(&(&arguments.room).into(), &(&arguments.run).into());
    set_up(&check, |check| {
        let mut left = Vec::new();
        for id in &ids {
            let task = work.plan.task(*id)?;
            if !work.folder.has(work.plan, task)? {
                left.push(task.clone());
            }
        }
        if left.is_empty() {
            return Ok(0);
        }
        work.run(check, &left, progress::listener(check.run.progress, None))?;
        Ok(0)
    })
}
