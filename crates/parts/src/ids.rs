//! The tasks that an argument names: `7`, `3,7-9`, or `env`. With `env`, the number comes from the environment variable
//! in which a scheduler gives each of its processes a number.

use std::ops::RangeInclusive;

use crate::error::PartsError;

/// The environment variables in which schedulers pass a process its index in a job array: Kubernetes, Slurm, AWS Batch,
/// Azure Batch.
const VARIABLES: [&str; 4] =
    ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX", "AZ_BATCH_TASK_ID"];

/// The tasks that one argument of the command line names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ids(Vec<RangeInclusive<u32>>);

impl Ids {
    /// Parses a number, a list, or `env`. `variable` looks up an environment variable.
    ///
    /// # Errors
    /// If the text is none of these, or the environment names no task.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, PartsError> {
        let refuse = |text: &str, what| PartsError::NotAnId { text: text.to_owned(), what };
        if text == "env" {
            let found = VARIABLES.iter().find_map(|name| variable(name).map(|value| (name, value)));
            let Some((name, value)) = found else {
                const NONE: &str = "none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID, AWS_BATCH_JOB_ARRAY_INDEX and AZ_BATCH_TASK_ID \
                                    is set";
                return Err(refuse(text, NONE));
            };
            let id = value.trim().parse().map_err(|_| refuse(&format!("{name}={value}"), "is not a number"))?;
            return Ok(Self(vec![id..=id]));
        }
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| refuse(text, "is not a list of numbers"));
        let range = |piece: &str| match piece.split_once('-') {
            Some((first, last)) => Ok(number(first)?..=number(last)?),
            None => number(piece).map(|id| id..=id),
        };
        let ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
        if ranges.iter().any(|range| range.is_empty()) {
            Err(refuse(text, "a range ends before it begins"))
        } else {
            Ok(Self(ranges))
        }
    }

    /// The named tasks, each once, in the order in which they are first named.
    ///
    /// # Errors
    /// If one of the tasks is not among the `tasks` tasks of the plan.
    pub fn among(all: &[Self], tasks: u32) -> Result<Vec<u32>, PartsError> {
        let ranges = || all.iter().flat_map(|ids| &ids.0);
        if let Some(range) = ranges().find(|range| *range.end() >= tasks) {
            return Err(PartsError::NoSuchTask { id: (*range.end()).max(*range.start()), tasks });
        }
        let mut seen = std::collections::HashSet::new();
        Ok(ranges().cloned().flatten().filter(|id| seen.insert(*id)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Result<Vec<u32>, String> {
        let parsed = Ids::parse(text, |_| None).map_err(|error| error.to_string())?;
        Ids::among(&[parsed], 10).map_err(|error| error.to_string())
    }

    #[test]
    fn tasks_are_numbers_lists_and_ranges() {
        assert_eq!(ids("7"), Ok(vec![7]));
        assert_eq!(ids("3,7-9,3"), Ok(vec![3, 7, 8, 9]));
        assert_eq!(ids("0-4294967295"), Err("task 4294967295: the plan has the tasks 0 to 9".to_owned()));
        assert_eq!(ids("10"), Err("task 10: the plan has the tasks 0 to 9".to_owned()));
        for wrong in ["", "x", "-1", "3,", "1-2-3", "4294967296", "9-3"] {
            assert!(
                ids(wrong).is_err_and(|text| text.ends_with("a task is a number, a list such as 3,7-9, or env")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_scheduler_names_the_task_in_its_own_variable() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> =
                set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let variable =
                move |name: &str| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            Ids::parse("env", variable).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[("SLURM_ARRAY_TASK_ID", "5")]), Ok(Ids(vec![5..=5])));
        assert_eq!(of(&[("SLURM_ARRAY_TASK_ID", "5"), ("JOB_COMPLETION_INDEX", "2")]), Ok(Ids(vec![2..=2])));
        assert!(of(&[]).is_err_and(|text| text.contains("SLURM_ARRAY_TASK_ID")));
        assert!(
            of(&[("AZ_BATCH_TASK_ID", "task")])
                .is_err_and(|text| text.contains("AZ_BATCH_TASK_ID=task: is not a number"))
        );
    }
}
