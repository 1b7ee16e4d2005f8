"""The commands of mdfsck that an engine needs. Each is a process of its own: whatever becomes of it, the worker lives on."""

import shutil
import subprocess
import sys

# Wrong usage, or another mdfsck than that of the plan: once more does not help.
USAGE = 8
# There is another round of tasks to carry out before there are results.
MORE = 32


class TaskFailed(Exception):
    """A task that left no part; once more may help."""


class Refused(Exception):
    """A command that is wrong: what it says, and its exit status."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


def missing(program, plan):
    """The tasks of a plan that have no part."""
    try:
        done = subprocess.run([program, "plan", "--status", plan, "--missing"], capture_output=True, text=True)
    except OSError as error:
        raise Refused(f"{program}: {error}", USAGE) from error
    if done.returncode:
        raise Refused(done.stderr.strip(), done.returncode)
    return [int(task) for task in done.stdout.strip().split(",") if task]


def run_task(program, plan, task, options):
    """Carries a task out; what it says on standard error, and whether it is refused for good.

    Its standard input is a pipe whose other end this process holds: if this one is killed, the task ends too.
    """
    command = [program, "task", plan, str(task), "--until-eof", "--progress", "none", *options]
    try:
        started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        raise TaskFailed(f"task {task}: {program}: {error}") from error
    with started as process:
        # Not communicate(): that would close the pipe.
        said = process.stderr.read().decode(errors="replace").strip()
        status = process.wait()
    if status & ~USAGE or status < 0:
        raise TaskFailed(f"task {task}: exit status {status}: {said}")
    return said, bool(status)


def merge(program, plan, options):
    """Prints the results; the exit status is that of the check, or MORE with nothing printed."""
    merging = subprocess.Popen([program, "merge", plan, *options], stdout=subprocess.PIPE)
    with merging as process:
        # Another round is one line. Results may be long: they are passed on as they come.
        first = process.stdout.readline()
        if b'"kind":"round"' not in first[:20]:
            sys.stdout.buffer.write(first)
            shutil.copyfileobj(process.stdout, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    return process.returncode
