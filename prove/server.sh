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
# The text of sql/NAME.sql behind its variables. own.sql comes before each statement that could change a database.
statement() { # NAME [VARIABLE VALUE]...
    name=$1
    shift
    while [ $# -gt 0 ]; do
        case $1 in database) type=sysname ;; *) type='nvarchar(max)' ;; esac
        printf "DECLARE @%s %s;\nSET @%s = N'%s';\n" "$1" "$type" "$1" "$(sql_text "$2")" || return 1
        shift 2
    done
    case $name in
    server | filelist | restore | attach | dbcc) ;;
    *) cat "$here/sql/own.sql" || return 1 ;;
    esac
    cat "$here/sql/$name.sql"
}
# Sends sql/NAME.sql with variables. What was sent and what came back stays in the folder sql.
step() { # NAME [VARIABLE VALUE]...
    steps=$((steps + 1))
    sent=$folder/sql/$(printf '%04d' "$steps")-$1.sql
    reply=${sent%.sql}.txt
    # A second run with --clean uses the same names.
    rm -f "$reply" "$reply.error"
    # On a full disk only a part of the statement is there. It must not be sent.
    if ! statement "$@" >"$sent"; then
        answered=4
        printf '%s cannot be written; is the disk full?\n' "$sent" >"$reply.error"
        return 4
    fi 2>/dev/null
    eval "set -- $connection"
    # -x: a name with \$( in it stays as it is. -I: without it, CHECKDB cannot evaluate indexed views.
    run "$sqlcmd" "$@" -d master -b -x -I -l 30 -W -w 65535 -s "$tab" -i "$sent" -o "$reply" 2>"$reply.error"
    answered=$?
    [ -s "$reply.error" ] || rm -f "$reply.error"
    # Not ':', as a redirection that fails ends the shell at a command of this kind.
    [ -e "$reply" ] || true >"$reply"
    tr -d '\r' <"$reply" >"$reply.lines" && mv "$reply.lines" "$reply"
    return "$answered"
}
# A step with a database of the kit.
own_step() { # NAME DATABASE
    step "$1" database "$2" folder "$server_files"
}
# What the server printed, without the lines that the statements of the kit print.
printed() { grep -v -e '^prove:' -e '^Changed language setting' "$reply"; }
# Text without what would steer a terminal: control characters (to U+009F), and those that turn the direction of the text (U+061C,
# U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
plain() {
    LC_ALL=C tr -d '\000-\037\177' |
        LC_ALL=C sed "$(printf 's/\302[\200-\237]//g; s/\330\234//g; s/\342\200[\216\217\252-\256]//g; s/\342\201[\246-\251]//g')"
}
# A line of the reply, as plain text.
told() { sed -n "s/^prove:$1=//p" "$reply" 2>/dev/null | head -n 1 | plain; } # NAME
# How the last statement ended, or why it failed: a line of `mdfsck prove reply`.
read_reply() { # outcome | why
    what=$1
    set --
    for file in "$reply" "$reply.error"; do
        [ ! -e "$file" ] || set -- "$@" "$file"
    done
    [ $# != 0 ] || set -- /dev/null
    "$mdfsck" prove reply --status "$answered" "$@" | sed -n "s/^$what$tab//p"
}
why() { printf '%s (%s)\n' "$(read_reply why)" "$reply"; }

# ---- databases of this run --------------------------------------------------------------------------------------------

# A name is noted before the server hears of it, so that a signal at any time leaves none behind.
note() { printf '%s\n' "$1" >>"$folder/made.txt" || fail 4 "$folder/made.txt cannot be written; is the disk full?"; }
forget() {
    # grep has status 1 if no name is left, and 2 if it cannot write: then the list stays as it is.
    grep -vxF -e "$1" "$folder/made.txt" >"$folder/made.new"
    if [ $? -le 1 ]; then mv "$folder/made.new" "$folder/made.txt"; else rm -f "$folder/made.new"; fi
}
drop() { # NAME
    case $1 in
    "$prefix"*) ;;
    *)
        say "$1 in made.txt is no database of the kit, and was not touched"
        forget "$1"
        return 0
        ;;
    esac
    # The server may still be busy with the statement before, so one answer is not enough.
    for try in 1 2 3 4 5; do
        [ "$try" = 1 ] || sleep 1
        own_step drop "$1"
        case $(told state) in
        NONE)
            forget "$1"
            return 0
            ;;
        FOREIGN)
            printf 'prove: the database %s was not touched: its file %s is not in %s; if this is the same folder, give its path on the server with --server-folder\n' \
                "$1" "$(told outside)" "$server_files" >&2
            return 1
            ;;
        esac
    done
    printf 'prove: the database %s is still on the server: %s\n' "$1" "$(why)" >&2
    return 1
}
# shellcheck disable=SC2317 # the trap calls it
tidy() {
    status=$?
    trap '' INT TERM HUP PIPE
    trap - EXIT
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null
        wait "$child" 2>/dev/null
        child=''
    fi
    left=''
    # The server never has these files, and if the disk is full, the statements need room.
    rm -rf "$folder/files/damaged"
    if [ -s "$folder/made.txt" ]; then
        say "removing the databases of this run"
        # forget puts a new file in place of this one, so the loop reads the whole list.
        while IFS= read -r name; do drop "$name" || left=1; done <"$folder/made.txt"
    fi
    if [ -n "$left" ]; then
        printf 'prove: run this script again with --clean --folder %s\n' "$folder" >&2
        # A signal stays the status.
        [ "$status" -gt 128 ] || status=$((status | 4))
    else
        rm -rf "$folder/files"
    fi
    exit "$status"
}
