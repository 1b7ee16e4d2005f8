//! `mdfsck explain`.

use check::registry::Check;

use crate::cli::ExplainArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<u8, Failure> {
    if arguments.all {
        output::print(|out| match arguments.markdown {
            true => out.write_all(report::explain::markdown().as_bytes()),
            false => report::explain::write_index(out),
        })?;
        return Ok(0);
    }
    let mut checks = Vec::new();
    for key in &arguments.keys {
        let found = Check::find(key);
        if found.is_empty() {
            let text = format!("{key}: no check has this id or message number; list them with 'mdfsck explain --all'");
            return Err(Failure::usage(text));
        }
        checks.extend(found);
    }
    output::print(|out| report::explain::write(&checks, out))?;
    Ok(0)
}
