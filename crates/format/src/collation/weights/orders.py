#!/usr/bin/env python3
"""Writes orders.txt, the orders of characters under Windows collations.

    orders.py JACKCESS ORDER80 ORDER100 > orders.txt

JACKCESS is a clone of https://github.com/jahlborn/jackcess (Apache-2.0, see NOTICE), whose files
src/main/resources/com/healthmarketscience/jackcess/index_codes_*.txt have what Access puts into its indexes for each
character: "General - Legacy" (Access 2000 to 2007) has the weights of generation 80, "General" (Access 2010) those of
generation 100.

ORDER80 and ORDER100 have the characters whose order a second, independent record confirms, a line for each first-level
weight. Only which characters they have is taken from them; where the two sources differ in anything else, this stops.
"""

import subprocess
import sys

FOLDER = "src/main/resources/com/healthmarketscience/jackcess/"
# Marks that are written over the character before them.
MARKS = range(0x300, 0x346)


def codes(clone, name):
    """What each character of the Basic Multilingual Plane is: the kind and the codes of its line."""
    lines = []
    for part in ("index_codes_", "index_codes_ext_"):
        path = f"HEAD:{FOLDER}{part}{name}.txt"
        lines += subprocess.run(["git", "-C", clone, "show", path], check=True, capture_output=True, text=True).stdout.split()
    characters = [c for c in range(0x10000) if not 0xD800 <= c < 0xE000]
    assert len(lines) == len(characters), name
    return {c: (line[0], line[1:].split(",")) for c, line in zip(characters, lines)}


def primary(code):
    digits = code[1][0]
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)


def accent(code):
    return int(code[1][1], 16) if code[0] in "IZ" and code[1][1] else 2


def confirmed(path, table):
    """The confirmed characters by kind, held against the codes."""
    kinds = {"order": {}, "special": set(), "ign": set(), "expands": set()}
    before = b""
    for line in open(path, encoding="utf-8"):
        if line.startswith("# ") and line[2:].split(":")[0] in kinds:
            kind, characters = line[2:].split(":")
            kinds[kind] = {int(c, 16) for c in characters.split()}
        elif not line.startswith("#"):
            weight = None
            for character in line.split("\t")[0].split():
                character, second = character.split(":")
                character = int(character, 16)
                code = table[character]
                assert code[0] in "SI" and accent(code) == int(second), hex(character)
                assert weight in (None, primary(code)), hex(character)
                weight = primary(code)
                kinds["order"][character] = weight
            assert before < weight, line
            before = weight
    assert all(table[c][0] == "U" for c in kinds["special"])
    assert all(table[c][0] == "X" for c in kinds["ign"])
    assert all(table[c][0] == "S" for c in kinds["expands"])
    return kinds


def expansions(kinds, table):
    """The letters that each expanding character counts as."""
    letters = {}
    for character in sorted(kinds["order"], reverse=True):
        if accent(table[character]) == 2:
            letters[kinds["order"][character]] = character
    small = {weight: min((c for c in kinds["order"] if kinds["order"][c] == weight and chr(c).islower()), default=letters[weight]) for weight in letters}
    found = {}
    for character in kinds["expands"]:
        rest, parts = primary(table[character]), []
        while rest:
            part = next((rest[:n] for n in (1, 2, 3) if rest[:n] in small), None)
            if part is None:
                break
            parts.append(small[part])
            rest = rest[len(part):]
        if not rest and len(parts) > 1:
            found[character] = parts
    return found


def by_weight(order, table, with_accents):
    """The characters in order, one token for each weight, and one for each run of neighbours with a weight each."""
    weights = {}
    for character, weight in order.items():
        weights.setdefault(weight, []).append(character)
    tokens = []
    for _, characters in sorted(weights.items()):
        shown = []
        for character in sorted(characters):
            second = accent(table[character])
            shown.append(f"{character:04X}" + (f":{second}" if with_accents and second != 2 else ""))
        tokens.append(",".join(shown))
    return join_runs(tokens)


def join_runs(tokens):
    joined = []
    for token in tokens:
        if len(token) == 4 and joined and len(joined[-1]) in (4, 9) and ":" not in joined[-1] and "," not in joined[-1]:
            first, last = joined[-1][:4], joined[-1][-4:]
            if int(last, 16) + 1 == int(token, 16):
                joined[-1] = f"{first}-{token}"
                continue
        joined.append(token)
    return joined


def write(name, tokens):
    line = name
    for token in tokens:
        if len(line) + 1 + len(token) > 118:
            print(line)
            line = name
        line += " " + token
    print(line)


def main():
    clone, path80, path100 = sys.argv[1:]
    older, later = codes(clone, "genleg"), codes(clone, "gen")
    kinds80, kinds100 = confirmed(path80, older), confirmed(path100, later)
    expands80, expands100 = expansions(kinds80, older), expansions(kinds100, later)
    print("# Written by orders.py from the index codes of Jackcess (Apache-2.0, see NOTICE).")
    print("# older: in the order of generation 80, a word for each first-level weight, or for a run of characters that have")
    print("# one each; characters with a colon have another second-level weight than 2. later: the same characters in the")
    print("# order of generation 100. last: what counts when all else is equal; ignored: what never counts; expand: what")
    print("# counts as several letters. A star marks the words for all generations, the others are for generation 80 alone.")
    write("older", by_weight(kinds80["order"], older, True))
    both = {c: w for c, w in kinds100["order"].items() if c in kinds80["order"]}
    write("later", by_weight(both, later, False))
    for name, kind in (("last", "special"), ("ignored", "ign")):
        shared = kinds80[kind] & kinds100[kind]
        write(name + "*", join_runs([f"{c:04X}" for c in sorted(shared)]))
        write(name, join_runs([f"{c:04X}" for c in sorted(kinds80[kind] - shared)]))
    shared = {c for c in expands80 if expands100.get(c) == expands80[c]}
    for name, chosen in (("expand*", shared), ("expand", set(expands80) - shared)):
        write(name, [f"{c:04X}=" + "+".join(f"{part:04X}" for part in expands80[c]) for c in sorted(chosen)])
    marks = [c for c in MARKS if older[c][0] == "P"]
    write("marks", join_runs([f"{c:04X}" for c in marks]))


main()
