"""Reads what `mdfsck export` wrote with programs that know nothing of mdfsck, and compares it value for value.

    read_back.py FOLDER...

Each folder is one database: `csv`, `jsonl`, `parquet` and `sql` have an export each; `truth.jsonl`, if it is there, has what the
rows are according to who made them: a line `{"table", "columns", "rows"}` for each table, in the texts of the lab
(`crates/lab/src/truth.rs`), ordered by the first column.

Every reader of every format must give the same rows, and these must be the truth. A value is compared in a form that all formats
have, see `Kind.value`: an integer, the digits of a decimal, the bits of a float, hundreds of nanoseconds, a text, bytes.

One line is printed per database. Exit status 1 if anything differs, with the first differences.
"""

import base64
import csv
import datetime
import decimal
import glob
import hashlib
import json
import logging
import os
import re
import sys
import uuid
import warnings

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import sqlfluff
import sqlglot
from sqlglot import expressions as exp

csv.field_size_limit(1 << 30)
warnings.simplefilter("ignore")
# What it takes for a mere command is checked by the other parser.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

MAX_FIELD = 1 << 28
EPOCH = datetime.date(1970, 1, 1).toordinal()
MICROS_PER_DAY = 86_400_000_000


# ---- Kinds of columns ---------------------------------------------------------------------------------------------


class Column:
    """A column of a table: its kind, and which columns of the Parquet file have its values."""

    def __init__(self, name, field, at, sql_type):
        self.name = name
        self.at = at
        self.rest = None
        self.offset = None
        self.kind = "variant" if sql_type == "sql_variant" else kind_of(field.type)

    def value(self, text):
        """The value that a text of CSV, of a script, or of the truth means."""
        return VALUES[self.kind](text)


def kind_of(arrow):
    types = pyarrow.types
    if types.is_boolean(arrow):
        return "bit"
    if types.is_integer(arrow):
        return "integer"
    if types.is_decimal(arrow):
        return "decimal"
    if types.is_float32(arrow):
        return "real"
    if types.is_float64(arrow):
        return "float"
    if types.is_date(arrow):
        return "date"
    if types.is_time(arrow):
        return "time"
    if types.is_timestamp(arrow):
        return "offset" if arrow.tz else "moment"
    if isinstance(arrow, pyarrow.UuidType) or types.is_fixed_size_binary(arrow):
        return "guid"
    if types.is_binary(arrow):
        return "bytes"
    assert types.is_string(arrow), arrow
    return "text"


def columns_of(header, schema, sql_types):
    """The columns that CSV names, each with those of Parquet: a second one has what microseconds do not, or the offset."""
    columns, at = [], 0
    for number, name in enumerate(header):
        assert schema.field(at).name == name, f"Parquet has {schema.field(at).name} where CSV has {name}"
        column = Column(name, schema.field(at), at, sql_types.get(name))
        at += 1
        for end in ("rest", "offset"):
            suffix = {"rest": "_100ns", "offset": "_offset"}[end]
            is_moment = column.kind in ("time", "moment", "offset") and at < len(schema)
            if is_moment and schema.field(at).name.startswith(name + suffix) and schema.field(at).type.bit_width <= 16:
                setattr(column, end, at)
                at += 1
        columns.append(column)
    assert at == len(schema), f"Parquet has more columns than CSV: {schema.names[at:]}"
    return columns


def ticks(hours, minutes, seconds, fraction):
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10_000_000 + int((fraction or "").ljust(7, "0"))


TIME = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?"
DATE = r"(\d{4})-(\d\d)-(\d\d)"
A_TIME = re.compile(TIME)
A_MOMENT = re.compile(DATE + "[T ]" + TIME)
AN_OFFSET = re.compile(DATE + "[T ]" + TIME + r" ?([+-])(\d\d):(\d\d)")
SCIENTIFIC = re.compile(r"-?\d+(\.\d+)?e-?\d+")


def date_of(text):
    return datetime.date.fromisoformat(text).toordinal() - EPOCH


def time_of(text):
    return ticks(*A_TIME.fullmatch(text).groups())


def days(year, month, day):
    return datetime.date(int(year), int(month), int(day)).toordinal() - EPOCH


def moment_of(text):
    parts = A_MOMENT.fullmatch(text).groups()
    return days(*parts[:3]) * MICROS_PER_DAY * 10 + ticks(*parts[3:])


def offset_of(text):
    *parts, sign, hours, minutes = AN_OFFSET.fullmatch(text).groups()
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)
    return (days(*parts[:3]) * MICROS_PER_DAY * 10 + ticks(*parts[3:]) - offset * 600_000_000, offset)


def variant_of(text):
    """A sql_variant has no type of its own in CSV: its text is compared, with one form for each float and moment."""
    if SCIENTIFIC.fullmatch(text):
        return repr(float(text))
    if found := AN_OFFSET.fullmatch(text):
        return text[:10] + " " + text[11 : found.start(8)].rstrip() + text[found.start(8) :]
    return text[:10] + " " + text[11:] if A_MOMENT.fullmatch(text) else text


def hexadecimal(text):
    return bytes.fromhex(text.removeprefix("0x"))


VALUES = {
    "bit": lambda text: {"0": False, "1": True, "false": False, "true": True}[text],
    "integer": int,
    "decimal": lambda text: text,
    "real": lambda text: repr(float(numpy.float32(text))),
    "float": lambda text: repr(float(text)),
    "date": date_of,
    "time": time_of,
    "moment": moment_of,
    "offset": offset_of,
    "guid": str.upper,
    "text": lambda text: text,
    "bytes": hexadecimal,
    "variant": variant_of,
}


# ---- Readers ------------------------------------------------------------------------------------------------------
# Each gives the values of a table column by column. A blind one cannot tell NULL from an empty text.


def from_texts(columns, texts, value=Column.value):
    return [
        [None if text is None or text == "" and column.kind not in ("text", "bytes", "variant") else value(column, text) for text in values]
        for column, values in zip(columns, texts)
    ]


def transposed(columns, rows):
    return [list(values) for values in zip(*rows)] if rows else [[] for _ in columns]


def csv_python(path, columns):
    with open(path, encoding="utf-8", newline="") as file:
        # A row whose only column is NULL is an empty line.
        rows = [row or [""] for row in csv.reader(file, strict=True)][1:]
    assert all(len(row) == len(columns) for row in rows), f"{path}: rows of different lengths"
    return from_texts(columns, transposed(columns, rows))


def csv_pandas(path, columns):
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)
    return from_texts(columns, [frame.iloc[:, at].tolist() for at in range(len(columns))])


def csv_polars(path, columns):
    frame = polars.read_csv(path, infer_schema=False, new_columns=[f"c{at}" for at in range(len(columns))])
    return from_texts(columns, [frame.to_series(at).to_list() for at in range(len(columns))])


def csv_duckdb(path, columns):
    rows = duckdb.sql(
        "SELECT * FROM read_csv($path, header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"',"
        " nullstr = '', allow_quoted_nulls = false, new_line = '\\r\\n', max_line_size = 100000000, parallel = false,"
        " columns = $columns)",
        params={"path": path, "columns": {f"c{at}": "VARCHAR" for at in range(len(columns))}},
    ).fetchall()
    return from_texts(columns, transposed(columns, rows))


def json_value(column, value):
    """The value of a member of an object, or of its text."""
    kind = column.kind
    if value is None:
        return None
    if kind == "bytes":
        return base64.b64decode(value, validate=True)
    if kind == "variant" and not isinstance(value, str):
        return variant_of(str(int(value)) if isinstance(value, bool) else str(value))
    if kind in ("real", "float"):
        return column.value(str(value))
    if kind == "bit" and isinstance(value, bool) or kind == "integer" and isinstance(value, int):
        return value
    return column.value(value)


def jsonl_python(path, columns):
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line, object_pairs_hook=list) for line in file]
    names = [column.name for column in columns]
    assert all([name for name, _ in row] == names for row in rows), f"{path}: other members"
    texts = transposed(columns, [[value for _, value in row] for row in rows])
    return [[json_value(column, value) for value in values] for column, values in zip(columns, texts)]


def jsonl_duckdb(path, columns):
    folded = [column.name.lower() for column in columns]
    if len(set(folded)) < len(folded):
        return None
    rows = duckdb.sql(
        "SELECT * FROM read_json($path, format = 'newline_delimited', maximum_object_size = 100000000, columns = $columns)",
        params={"path": path, "columns": {column.name: "VARCHAR" for column in columns}},
    ).fetchall()
    texts = transposed(columns, rows)
    value = lambda column, text: json_value(column, {"true": True, "false": False}.get(text, text) if column.kind in ("bit", "variant") else text)
    return [[json_value(column, None) if text is None else value(column, text) for text in values] for column, values in zip(columns, texts)]


def typed(columns, column_of, to_days, to_ticks):
    """Values of a Parquet file. `column_of` gives a column by number as Python values; the other two make numbers of dates and times."""

    def value(column, value, rest, offset):
        kind = column.kind
        if value is None:
            return None
        if kind == "date":
            return to_days(value)
        if kind in ("time", "moment"):
            return to_ticks(value) + (rest or 0)
        if kind == "offset":
            return (to_ticks(value) + (rest or 0), offset)
        if kind == "decimal":
            return format(value, "f")
        if kind in ("real", "float"):
            return repr(float(value))
        if kind == "guid":
            return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value)).upper()
        if kind == "variant":
            return variant_of(value)
        return int(value) if kind == "integer" else value

    made = []
    for column in columns:
        values = column_of(column.at)
        rests = [None] * len(values) if column.rest is None else column_of(column.rest)
        offsets = [None] * len(values) if column.offset is None else column_of(column.offset)
        made.append([value(column, *parts) for parts in zip(values, rests, offsets)])
    return made


def parquet_pyarrow(path, columns):
    table = pyarrow.parquet.read_table(path)
    numbers = {pyarrow.types.is_date: pyarrow.int32(), pyarrow.types.is_time: pyarrow.int64(), pyarrow.types.is_timestamp: pyarrow.int64()}

    def column_of(at):
        column = table.column(at)
        return next((column.cast(to) for test, to in numbers.items() if test(column.type)), column).to_pylist()

    return typed(columns, column_of, lambda days: days, lambda micros: micros * 10)


def parquet_pandas(path, columns):
    frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")

    def column_of(at):
        series = frame.iloc[:, at]
        missing = series.isna().tolist()
        if series.dtype.kind == "M":
            series = series.dt.tz_localize(None) if getattr(series.dtype, "tz", None) else series
            series = pandas.Series(series.to_numpy().astype("datetime64[us]").astype("int64"))
        return [None if is_missing else value for value, is_missing in zip(series.tolist(), missing)]

    def to_ticks(value):
        if isinstance(value, datetime.time):
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 10_000_000 + value.microsecond * 10
        return value * 10

    return typed(columns, column_of, lambda day: day.toordinal() - EPOCH, to_ticks)


def parquet_polars(path, columns):
    frame = polars.read_parquet(path)

    def column_of(at):
        series = frame.to_series(at)
        if isinstance(series.dtype, polars.Datetime):
            series = series.dt.timestamp("us")
        elif series.dtype == polars.Time:
            series = series.cast(polars.Int64) // 1000
        elif series.dtype == polars.Date:
            series = series.cast(polars.Int32)
        return series.to_list()

    return typed(columns, column_of, lambda days: days, lambda micros: micros * 10)


def parquet_duckdb(path, columns):
    relation = duckdb.read_parquet(path)
    names = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    is_moment = {column.at for column in columns if column.kind in ("moment", "offset")}
    wanted = [f"epoch_us({name})" if at in is_moment else name for at, name in enumerate(names)]
    rows = duckdb.sql(f"SELECT {', '.join(wanted)} FROM read_parquet($path)", params={"path": path}).fetchall()
    values = transposed(wanted, rows)

    def to_ticks(value):
        if isinstance(value, datetime.time):
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 10_000_000 + value.microsecond * 10
        return value * 10

    return typed(columns, lambda at: values[at], lambda day: day.toordinal() - EPOCH, to_ticks)


READERS = [
    # format, reader, function, is blind
    ("csv", "python", csv_python, True),
    ("csv", "pandas", csv_pandas, True),
    ("csv", "polars", csv_polars, True),
    ("csv", "duckdb", csv_duckdb, False),
    ("jsonl", "python", jsonl_python, False),
    ("jsonl", "duckdb", jsonl_duckdb, False),
    ("parquet", "pandas", parquet_pandas, False),
    ("parquet", "polars", parquet_polars, False),
    ("parquet", "duckdb", parquet_duckdb, False),
]


# ---- T-SQL --------------------------------------------------------------------------------------------------------


def batches(text):
    """What sqlcmd would send to the server one by one. It replaces variables, and obeys lines that begin with a command."""
    assert "$(" not in text and not re.search(r"(?m)^\s*(:|!!)", text), "a line that sqlcmd would take for a command"
    return [batch for batch in re.split(r"(?mi)^[ \t]*GO[ \t]*\r?\n", text) if batch.strip()]


def sql_types(text):
    """The types of the columns by CREATE TABLE."""
    return {name.replace("]]", "]"): kind for name, kind in re.findall(r"(?m)^ +\[((?:[^\]]|\]\])+)\] (?:\[sys\]\.)?\[?(\w+)", text)}


def literal(node, is_variant):
    """What an expression of an INSERT means: None, a text, or bytes."""
    if isinstance(node, exp.Cast) and is_variant:
        assert node.to.this == exp.DataType.Type.VARIANT, "a list of values gives a column one type: each must be sql_variant"
        return literal(node.this, False)
    assert not is_variant or isinstance(node, exp.Null), "a list of values gives a column one type: each must be sql_variant"
    if isinstance(node, exp.Cast):
        return literal(node.this, False)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Neg):
        return "-" + literal(node.this, False)
    if isinstance(node, exp.Add):
        return literal(node.this, False) + literal(node.expression, False)
    if isinstance(node, exp.HexString):
        return bytes.fromhex(node.this)
    if isinstance(node, exp.Column) and node.name == "0x":
        return b""
    if isinstance(node, exp.ScopeResolution):
        return literal(node.expression.expressions[0], False)
    assert isinstance(node, (exp.Literal, exp.National)), repr(node)
    # The server joins two lines if a backslash ends the first.
    return re.sub(r"\\\r?\n", "", node.this)


def sql_value(column, node):
    made = literal(node, column.kind == "variant")
    if made is None or isinstance(made, bytes) and column.kind == "bytes":
        return made
    if isinstance(made, bytes):
        return "0x" + made.hex().upper()
    return column.value(made)


# A comment before it says which columns the server fills itself.
AN_INSERT = re.compile(r"(?:/\*(?:(?!\*/).)*\*/\s*)*INSERT\b", re.S)


def inserts_of(path):
    """The batches of a script that insert rows. All others must be T-SQL to a parser that has its whole grammar, and so must each of these
    with its first row: they are noted."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    inserts = []
    for batch in batches(text):
        if not AN_INSERT.match(batch):
            WHOLE.setdefault(path, []).append(batch)
            continue
        inserts.append(batch)
        head, _, first = batch.partition("\n")
        first, has_more, _ = first.partition("),\n(")
        if len(first) < 4000:
            WHOLE.setdefault(path, []).append(f"{head}\n{first});\n" if has_more else f"{head}\n{first}")
    return inserts


def sql_rows(path, inserts, columns):
    """The values of all INSERT statements of a script, by column; None for one that no INSERT names."""
    by_name = {column.name: at for at, column in enumerate(columns)}
    values = [None] * len(columns)
    for batch in inserts:
        (statement,) = [statement for statement in sqlglot.parse(batch, read="tsql") if statement]
        rows = statement.expression.expressions
        named = [by_name[name.name] for name in statement.this.expressions]
        assert len(rows) <= 1000, f"{path}: SQL Server takes 1,000 rows at most"
        for at in named:
            values[at] = values[at] or []
        for row in rows:
            assert len(row.expressions) == len(named), f"{path}: a row of another length"
            for at, node in zip(named, row.expressions):
                values[at].append(sql_value(columns[at], node))
    return values


# The batches of each script that are parsed whole.
WHOLE = {}


def parse_scripts():
    """Whether all statements but the long rows are T-SQL by sqlfluff's grammar. It reads each batch once: most scripts share theirs with
    others."""
    config = sqlfluff.core.FluffConfig(overrides={"dialect": "tsql"})
    seen, wrong = set(), []
    for path, all_batches in WHOLE.items():
        new = [batch for batch in dict.fromkeys(all_batches) if batch not in seen]
        if not new:
            continue
        seen.update(new)
        try:
            # It does not know that an opening bracket may stand in a name in brackets.
            sqlfluff.parse("GO\n".join(new).replace("[[", "[_"), config=config)
        except sqlfluff.api.simple.APIParsingError as error:
            wrong.append(f"{path}: {str(error)[:300]}")
    return len(seen), wrong


# ---- Comparison ---------------------------------------------------------------------------------------------------


class Differences:
    def __init__(self):
        self.count = 0
        self.first = []

    def add(self, text):
        self.count += 1
        if len(self.first) < 20:
            self.first.append(text)


def short(value):
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:90]}... ({len(text)})"


def compare(what, columns, found, expected, is_blind, differences):
    """Compares the columns of two readers; how many values."""
    count = 0
    for column, values, wanted in zip(columns, found, expected):
        if values is None:
            continue
        count += len(values)
        if values == wanted:
            continue
        if len(values) != len(wanted):
            differences.add(f"{what}.{column.name}: {len(values)} values, not {len(wanted)}")
            continue
        empty = (None, "", b"")
        for row, (value, want) in enumerate(zip(values, wanted)):
            if value != want and not (is_blind and value in empty and want in empty):
                differences.add(f"{what}.{column.name}, row {row + 1}: {short(value)}, not {short(want)}")
    return count


def by_first_column(columns, values):
    """The rows in the order of the first column."""
    order = sorted(range(len(values[0])), key=lambda row: values[0][row])
    return [None if column is None else [column[row] for row in order] for column in values]


def exact_dates(path, columns, truth, differences):
    """Texts of CSV for dates and times have the digits of their types, as the truth has: numbers do not show it."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = sorted(list(csv.reader(file))[1:], key=lambda row: int(row[0]))
    for at, column in enumerate(columns):
        if column.kind not in ("date", "time", "moment", "offset", "decimal", "guid"):
            continue
        for row, expected in zip(rows, truth):
            wanted = (expected[at] or "").replace(" +", "+").replace(" -", "-").replace(" ", "T")
            if row[at] != wanted:
                differences.add(f"{path}.{column.name}: {row[at]!r}, not {wanted!r}")


def contents(paths, texts):
    """Digests of files and of texts."""
    made = [hashlib.sha256(text.encode()).digest() for text in texts]
    for path in paths:
        with open(path, "rb") as file:
            made.append(hashlib.sha256(file.read()).digest())
    return tuple(made)


# What was equal once: files of the same contents are not read again, and most versions have the same.
EQUAL = {}


def table(stem, path, truth, differences):
    """Compares the files of a table with each other and with its line of the truth, which may be empty; how many values they have, how many
    of them are in a script, and who could not read them."""
    with open(path["csv"], encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    script, inserts = "", []
    if os.path.exists(path["sql"]):
        with open(path["sql"], encoding="utf-8") as file:
            script = file.read(200_000).partition("INSERT INTO")[0]
        try:
            inserts = inserts_of(path["sql"])
        except AssertionError as error:
            differences.add(f"sql: {stem}: {error}")
    types = sql_types(script)
    key = contents([path[form] for form in ("csv", "jsonl", "parquet")], [stem, str(types), truth, *inserts])
    if key in EQUAL:
        return EQUAL[key]
    before, skipped, sql_values = differences.count, [], 0
    columns = columns_of(header, pyarrow.parquet.read_schema(path["parquet"]), types)
    reference = parquet_pyarrow(path["parquet"], columns)
    for form, reader, read, is_blind in READERS:
        what = f"{form} by {reader}: {stem}"
        try:
            found = read(path[form], columns)
        except Exception as error:
            differences.add(f"{what}: {type(error).__name__}: {str(error)[:300]}")
            continue
        if found is None:
            skipped.append(what)
        else:
            compare(what, columns, found, reference, is_blind, differences)
    if script:
        try:
            found = sql_rows(path["sql"], inserts, columns)
            sql_values = compare(f"sql: {stem}", columns, found, reference, False, differences)
        except Exception as error:
            differences.add(f"sql: {stem}: {type(error).__name__}: {str(error)[:300]}")
    if truth:
        of_lab = json.loads(truth)
        assert of_lab["columns"] == header, f"{stem}: columns {header}, not {of_lab['columns']}"
        rows = sorted(of_lab["rows"], key=lambda row: int(row[0]))
        expected = [
            [None if text is None else column.value(text) for text in column_values]
            for column, column_values in zip(columns, transposed(columns, rows))
        ]
        compare(f"{stem} against the truth", columns, by_first_column(columns, reference), expected, False, differences)
        exact_dates(path["csv"], columns, rows, differences)
    counts = sum(map(len, reference)), sql_values, skipped
    if differences.count == before:
        EQUAL[key] = counts
    return counts


def database(folder):
    differences = Differences()
    truth = {}
    if os.path.exists(os.path.join(folder, "truth.jsonl")):
        with open(os.path.join(folder, "truth.jsonl"), encoding="utf-8") as file:
            truth = {json.loads(line)["table"]: line for line in file}
    tables, values, skipped, sql_values = 0, 0, [], 0
    stems = [os.path.basename(path)[:-4] for path in sorted(glob.glob(os.path.join(glob.escape(folder), "csv", "*.csv")))]
    stems = [stem for stem in stems if not stem.endswith(".unreadable")]
    for stem in stems:
        path = {form: os.path.join(folder, form, f"{stem}.{form}") for form in ("csv", "jsonl", "parquet", "sql")}
        found = table(stem, path, truth.pop(stem.removeprefix("dbo."), ""), differences)
        tables += 1
        values += found[0]
        sql_values += found[1]
        skipped += found[2]
    for name in truth:
        differences.add(f"{name} was not exported")
    verdict = "equal" if differences.count == 0 else f"{differences.count} DIFFERENCES"
    name = os.path.basename(os.path.normpath(folder))
    print(f"{name}: {tables} tables, {values} values, {len(READERS) + 1} readers, {sql_values} values of scripts: {verdict}")
    for text in differences.first:
        print(f"  {text}")
    for text in skipped:
        print(f"  not read, as it takes names that differ in case for the same: {text}")
    return differences.count == 0 and tables > 0


def main(folders):
    results = [database(folder) for folder in folders]
    scripts, wrong = parse_scripts()
    print(f"{scripts} different batches of scripts without their further rows: {'all of them T-SQL' if not wrong else f'{len(wrong)} WRONG'}")
    for text in wrong[:20]:
        print(f"  {text}")
    sys.exit(0 if all(results) and not wrong else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
