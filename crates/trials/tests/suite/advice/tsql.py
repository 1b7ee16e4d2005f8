"""Whether scripts of mdfsck advise are T-SQL: reads the scripts that are named and prints how many statements they have.

What sqlfluff has a grammar for is parsed by it. It has none for RESTORE, BACKUP and DBCC: these are held against their syntax as
Microsoft documents it (RESTORE statements, RESTORE arguments, BACKUP, DBCC CHECKDB, CHECKTABLE, CHECKALLOC, CHECKCONSTRAINTS,
UPDATEUSAGE, ALTER DATABASE SET options), and the order of a restore against "Restore pages" and "Tail-log backups".
"""

import re
import sys

import sqlfluff

NAME = r"\[(?:[^\]]|\]\])+\]"
TEXT = r"N'(?:[^']|'')*'"
DEVICES = rf"DISK = {TEXT}(?:, DISK = {TEXT})*"
PAGES = r"'\d+:\d+(?:, \d+:\d+)*'"
PART = rf"(?:FILE|FILEGROUP) = {TEXT}"
FROM_SET = rf"FROM {DEVICES} WITH (?:FILE = \d+, )?(?:REPLACE, )?NORECOVERY"
REPAIR = r"(?:REPAIR_ALLOW_DATA_LOSS|REPAIR_REBUILD)"
DOCUMENTED = [
    # RESTORE DATABASE name PAGE = 'file:page [,...n]' FROM <backup_device> WITH NORECOVERY: NORECOVERY is not optional here.
    rf"RESTORE DATABASE {NAME} PAGE = {PAGES} FROM {DEVICES} WITH FILE = \d+, NORECOVERY",
    rf"RESTORE DATABASE {NAME} {PART}(?:, {PART})* {FROM_SET}",
    rf"RESTORE DATABASE {NAME} {FROM_SET}",
    # Without FROM it recovers what was restored.
    rf"RESTORE DATABASE {NAME} WITH RECOVERY",
    rf"RESTORE LOG {NAME} {FROM_SET}",
    rf"BACKUP LOG {NAME} TO DISK = {TEXT} WITH NORECOVERY",
    rf"DBCC (?:CHECKDB|CHECKALLOC|CHECKTABLE) \({TEXT}(?:, {REPAIR})?\) WITH NO_INFOMSGS, ALL_ERRORMSGS",
    r"DBCC CHECKCONSTRAINTS WITH ALL_CONSTRAINTS",
    rf"DBCC CHECKCONSTRAINTS \({TEXT}\)",
    rf"DBCC UPDATEUSAGE \(0, (?:{TEXT}|-?\d+)\) WITH COUNT_ROWS",
    rf"ALTER DATABASE {NAME} SET (?:SINGLE_USER WITH ROLLBACK IMMEDIATE|MULTI_USER)",
    rf"ALTER DATABASE {NAME} SET (?:READ_ONLY WITH ROLLBACK IMMEDIATE|READ_WRITE)",
    # What follows is compiled, and not run, until it is OFF.
    r"SET NOEXEC (?:ON|OFF)",
    r"IF @@ERROR <> 0 SET NOEXEC ON",
    rf"IF DB_ID\({TEXT}\) IS NOT NULL SET NOEXEC ON",
]
PARSED = ("USE ", "SELECT ", "UPDATE ", "ALTER INDEX ", "ALTER TABLE ", "CREATE ", "DROP INDEX ")


def statements(text):
    """The statements of a script, and those in its comments that a person may use; a line each."""
    found, comment = [], []
    lines = text.split("\n")
    code = "\n".join(line for line in lines if not line.startswith("--"))
    found += split(code)
    for line in lines + [""]:
        if line.startswith("-- "):
            comment.append(line[3:])
        else:
            found += suggested(comment)
            comment = []
    return found


def suggested(comment):
    """Statements among the lines of a comment: from a line that begins one up to its semicolon."""
    found, open_text = [], None
    for line in comment:
        if open_text is None and re.match(r"(ALTER|DROP|CREATE|DBCC|UPDATE) [A-Z\[]+ ", line):
            open_text = ""
        if open_text is not None:
            open_text += " " + line
            if line.rstrip().endswith(";"):
                found += split(open_text)
                open_text = None
    assert open_text is None, open_text
    return found


def split(code):
    """Splits at semicolons outside of names, texts and comments; blanks in between become one."""
    token = re.compile(rf"{NAME}|{TEXT}|'(?:[^']|'')*'|/\*.*?\*/|;|\s+|[^\s;\[']+", re.S)
    found, now = [], ""
    for part in token.findall(code):
        if part == ";":
            found.append(now.strip())
            now = ""
        else:
            now += " " if part.isspace() else part
    assert not now.strip(), f"no semicolon after: {now}"
    return [statement for statement in found if statement]


def wrong(statement):
    """Why a statement is none; None if it is one."""
    if any(re.fullmatch(form, statement) for form in DOCUMENTED):
        return None
    if not statement.startswith(PARSED):
        return "no documented form"
    # An address of a row is a function that sqlfluff does not know.
    statement = re.sub(r"%%physloc%% = 0x[0-9A-F]+ /\*.*?\*/", "1 = 1", statement)
    try:
        sqlfluff.parse(statement + ";\n", dialect="tsql")
    except sqlfluff.api.simple.APIParsingError as error:
        return str(error)[:300]
    return None


def order(run):
    """Why the restores of a script are in no order that a server takes; None if they are."""
    of_restore = [statement for statement in run if statement.startswith(("RESTORE ", "BACKUP "))]
    if not of_restore:
        return None
    kinds = [statement.split(" ")[0] + " " + statement.split(" ")[1] for statement in of_restore]
    if of_restore[-1].endswith("WITH RECOVERY") is False or sum("NORECOVERY" not in text for text in of_restore) != 1:
        return "just the last one recovers"
    has_tail = kinds[0] == "BACKUP LOG"
    restores = kinds[1:] if has_tail else kinds
    if restores[0] != "RESTORE DATABASE" or "BACKUP LOG" in restores:
        return "the tail of the log comes before all, then the full backup"
    logs = [at for at, kind in enumerate(restores) if kind == "RESTORE LOG"]
    if logs and logs != list(range(logs[0], len(restores) - 1)):
        return "logs come after all data"
    if has_tail:
        tail = re.search(TEXT, of_restore[0]).group(0)
        if tail not in of_restore[-2] or any(tail in text for text in of_restore[1:-2]):
            return "the tail is restored last"
    elif not any("REPLACE" in text for text in of_restore):
        return "without the tail of the log, a server refuses, but for REPLACE"
    return None


def main():
    count, faults, seen = 0, [], {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", newline="") as file:
            found = statements(file.read())
        count += len(found)
        for statement in found:
            if statement not in seen:
                seen[statement] = wrong(statement)
            if seen[statement]:
                faults.append(f"{path}: {statement}: {seen[statement]}")
        if order(found):
            faults.append(f"{path}: {order(found)}")
    print(f"{count} statements, {len(seen)} different ones, {len(faults)} faults")
    print("\n".join(faults[:20]))
    # What must not pass.
    for harm in ["RESTORE DATABASE [a] PAGE = '1:57' FROM DISK = N'x' WITH FILE = 1, RECOVERY", "RESTORE LOG [a]", "SELEKT 1",
                 "ALTER INDEX [i] ON [t] REBILD"]:
        assert wrong(harm), harm
    assert order(split("RESTORE LOG [a] FROM DISK = N'x' WITH NORECOVERY; RESTORE DATABASE [a] WITH RECOVERY;"))
    sys.exit(1 if faults else 0)


main()
