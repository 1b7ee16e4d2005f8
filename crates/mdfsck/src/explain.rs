//! `mdfsck explain`.

use check::registry::Check;
use check::registry::limits::Limit;

use crate::cli::ExplainArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<u8, Failure> {
    if arguments.all {
        output::print(|out| match (arguments.markdown, arguments.limits) {
            (true, false) => out.write_all(report::explain::markdown().as_bytes()),
            (true, true) => out.write_all(report::limits::markdown().as_bytes()),
            (false, true) => report::limits::write_index(out),
            (false, false) => {
                report::explain::write_index(out)?;
                writeln!(out)?;
                report::limits::write_index(out)
            }
        })?;
        return Ok(0);
    }
    let (mut checks, mut limits) = (Vec::new(), Vec::new());
    for key in &arguments.keys {
        let (found, limit) = (Check::find(key), Limit::find(key));
        if found.is_empty() && limit.is_none() {
            let text = format!(
                "{key}: no check or limit has this id or message number; list them with 'mdfsck explain --all'"
            );
            return Err(Failure::usage(text));
        }
        checks.extend(found);
        limits.extend(limit);
    }
    output::print(|out| {
        report::explain::write(&checks, out)?;
        if !checks.is_empty() && !limits.is_empty() {
            writeln!(out)?;
        }
        report::limits::write(&limits, out)
    })?;
    Ok(0)
}
