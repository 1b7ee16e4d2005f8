#!/bin/sh
# How prove.sh talks to the server, and how it keeps track of the databases that it makes. prove.sh reads this file.
# shellcheck disable=SC2154 # prove.sh sets the variables

child='' steps=0 reply=''
# A program that a signal to this script ends at once.
run() {
    "$@" </dev/null &
    child=$!
    wait "$child"
    set -- $?
    child=''
    return "$1"
}
# Sends sql/NAME.sql with variables. What was sent and what came back stays in the folder sql.
step() { # NAME [VARIABLE VALUE]...
    name=$1
    shift
    steps=$((steps + 1))
    sent=$folder/sql/$(printf '%04d' "$steps")-$name.sql
    reply=${sent%.sql}.txt
    while [ $# -gt 0 ]; do
        case $1 in database) type=sysname ;; *) type='nvarchar(max)' ;; esac
        printf "DECLARE @%s %s;\nSET @%s = N'%s';\n" "$1" "$type" "$1" "$(sql_text "$2")"
        shift 2
    done >"$sent"
    cat "$here/sql/$name.sql" >>"$sent"
    eval "set -- $connection"
    # -x: a name with \$( in it stays as it is. -I: without it, CHECKDB cannot evaluate indexed views.
    run "$sqlcmd" "$@" -d master -b -x -I -l 30 -W -w 65535 -s "$tab" -i "$sent" -o "$reply" 2>"$reply.error"
    answered=$?
    [ -s "$reply.error" ] || rm -f "$reply.error"
    [ -e "$reply" ] || : >"$reply"
    tr -d '\r' <"$reply" >"$reply.lines" && mv "$reply.lines" "$reply"
    return "$answered"
}
# What the server printed, without the lines that the statements of the kit print.
printed() { grep -v '^prove:\|^Changed language setting' "$reply"; }
told() { sed -n "s/^prove:$1=//p" "$reply" | head -n 1; } # NAME
# How the last statement ended, or why it failed: a line of `mdfsck prove reply`.
read_reply() { # outcome | why
    set -- "$1" "$reply" "$reply.error"
    [ -e "$3" ] || set -- "$1" "$2"
    what=$1
    shift
    "$mdfsck" prove reply --status "$answered" "$@" | sed -n "s/^$what$tab//p"
}
why() { printf '%s (%s)\n' "$(read_reply why)" "$reply"; }

# ---- databases of this run --------------------------------------------------------------------------------------------

# A name is noted before the server hears of it, so that a signal at any time leaves none behind.
note() { printf '%s\n' "$1" >>"$folder/made.txt"; }
forget() {
    grep -vxF -e "$1" "$folder/made.txt" >"$folder/made.new"
    mv "$folder/made.new" "$folder/made.txt"
}
drop() { # NAME
    # The server may still be busy with the statement before, so one answer is not enough.
    for try in 1 2 3 4 5; do
        [ "$try" = 1 ] || sleep 1
        step drop database "$1" folder "$server_files"
        if [ "$(told state)" = NONE ]; then
            forget "$1"
            return 0
        fi
    done
    if [ "$(told state)" = FOREIGN ]; then
        say "the database $1 has files outside of $server_files, so it is not of this run, and was not touched"
        forget "$1"
        return 0
    fi
    printf 'prove: the database %s is still on the server: %s\n' "$1" "$(why)" >&2
    return 1
}
# shellcheck disable=SC2317 # the trap calls it
tidy() {
    status=$?
    trap '' INT TERM HUP
    trap - EXIT
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null
        wait "$child" 2>/dev/null
        child=''
    fi
    left=''
    if [ -s "$folder/made.txt" ]; then
        say "removing the databases of this run"
        cp "$folder/made.txt" "$folder/to-remove"
        while IFS= read -r name; do drop "$name" || left=1; done <"$folder/to-remove"
        rm -f "$folder/to-remove"
    fi
    if [ -n "$left" ]; then
        printf 'prove: run this script again with --clean --folder %s\n' "$folder" >&2
        [ "$status" != 0 ] || status=4
    else
        rm -rf "$folder/files"
    fi
    exit "$status"
}
