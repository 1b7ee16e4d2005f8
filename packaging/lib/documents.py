"""What goes beside the executable: manual pages, completions, licences."""

import re
from functools import cache

from archives import Entry, gzipped
from project import NAME, ROOT, environment, run
from targets import HOST, executable

# Where each shell looks for the completions that packages install.
COMPLETIONS = {
    "bash": ("mdfsck.bash", "share/bash-completion/completions/mdfsck"),
    "zsh": ("_mdfsck", "share/zsh/vendor-completions/_mdfsck"),
    "fish": ("mdfsck.fish", "share/fish/vendor_completions.d/mdfsck.fish"),
    "elvish": ("mdfsck.elv", None),
    "powershell": ("mdfsck.ps1", None),
}


def ask(*arguments):
    return run([executable(HOST), *arguments], env=environment())


@cache
def manual_pages():
    """The manual page of the program and of each command, by file name: pages name those below them."""
    pages, commands = {}, [()]
    while commands:
        command = commands.pop()
        page = ask("man", *command)
        name = "-".join((NAME, *command))
        pages[f"{name}.1"] = page
        below = re.findall(rb"^" + re.escape(name.replace("-", r"\-")).encode() + rb"\\-([a-z]+)\(1\)", page, re.M)
        commands += [(*command, part.decode()) for part in below]
    return dict(sorted(pages.items()))


@cache
def completions():
    """The completion script for each shell."""
    return {shell: ask("completions", shell) for shell in COMPLETIONS}


def text(name):
    return (ROOT / name).read_bytes()


def in_archive():
    """What an archive that is unpacked by hand holds beside the executable."""
    entries = [Entry(name, text(name)) for name in ["CHANGELOG.md", "LICENSE", "NOTICE", "README.md"]]
    entries += [Entry(f"man/{name}", page) for name, page in manual_pages().items()]
    entries += [Entry(f"completions/{COMPLETIONS[shell][0]}", script) for shell, script in completions().items()]
    return entries


def in_prefix():
    """The same as packages install it, below a prefix such as usr."""
    entries = [Entry(f"share/man/man1/{name}.gz", gzipped(page)) for name, page in manual_pages().items()]
    for shell, script in completions().items():
        path = COMPLETIONS[shell][1]
        entries += [Entry(path, script)] if path else []
    return entries
