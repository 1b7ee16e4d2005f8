#!/bin/sh
# Compares mdfsck with DBCC CHECKDB on your own server: see docs/guides/prove.md. `prove.sh --help` has the options.
set -u
unset CDPATH # with it, cd may go elsewhere
here=$(cd "$(dirname "$0")" && pwd) || exit 4
mdfsck=${MDFSCK:-mdfsck} sqlcmd=${SQLCMD:-sqlcmd}
prefix=mdfsck_prove_ # sql/*.sql refuse every database without it
tab=$(printf '\t')

usage() {
    cat <<'USAGE'
Usage: prove.sh --folder DIR (--backup PATH... | --data FILE...) [OPTIONS] [-- OPTIONS OF SQLCMD]

Restores a backup under a new name (or attaches copies of data files), damages copies of its files, lets SQL Server's DBCC CHECKDB
and mdfsck check each copy, and compares what they print.

  --folder DIR          new or empty folder for files and results, which the server can write to
  --server-folder PATH  the same folder as the server names it, if it runs in a container or on another machine
  --backup PATH         full backup, as the server names it; give the option once for each stripe
  --position N          number of the backup in a file with several [default: 1]
  --data FILE           data or log file of a database that is shut down; once for each file. The kit copies the file
  --copies N            number of damaged copies [default: 60]
  --seed N              seed of the first copy [default: 1]
  --keep-all            keep the files of all copies, not only of those with a difference
  --yes                 begin without a question
  --clean               only remove the databases that a run in DIR left behind

After -- follow options of sqlcmd, such as -S tcp:localhost,1433 -U sa -C. The variable SQLCMDPASSWORD holds a password. The variables
MDFSCK and SQLCMD name the programs if they are not on the PATH.

Exit status: 0 no difference, 1 differences, 4 the kit could not run, 8 wrong usage, 16 some copies were not compared (17: both),
129, 130, 141 or 143 ended by a signal. 4 is added (5, 20, 21) if a database of the kit is still on the server.
USAGE
}
say() { printf '%s\n' "$*"; }
fail() { # STATUS TEXT
    printf 'prove: %s\n' "$2" >&2
    exit "$1"
}
sql_text() { printf '%s' "$1" | sed "s/'/''/g"; }
# An argument, quoted for eval: the shell of POSIX has no lists.
word() { printf " '%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
is_number() { case $1 in '' | *[!0-9]* | ??????????*) return 1 ;; esac }

folder='' server_folder='' disks='' data='' connection='' position=1 copies=60 seed=1 yes='' keep_all='' clean=''
while [ $# -gt 0 ]; do
    case $1 in
    --folder | --server-folder | --backup | --position | --data | --copies | --seed)
        if [ $# -lt 2 ] || [ -z "$2" ]; then fail 8 "$1 needs a value; 'prove.sh --help' lists the options"; fi
        ;;
    esac
    case $1 in
    --folder) folder=$2 && shift ;;
    --server-folder) server_folder=$2 && shift ;;
    --backup) disks="${disks:+$disks, }DISK = N'$(sql_text "$2")'" && shift ;;
    --position) position=$2 && shift ;;
    --data) data="$data$(word "$2")" && shift ;;
    --copies) copies=$2 && shift ;;
    --seed) seed=$2 && shift ;;
    --keep-all) keep_all=1 ;;
    --yes) yes=1 ;;
    --clean) clean=1 ;;
    --help | -h) usage && exit 0 ;;
    --)
        shift
        for option in "$@"; do connection="$connection$(word "$option")"; done
        break
        ;;
    *) fail 8 "$1: no such option; 'prove.sh --help' lists the options" ;;
    esac
    shift
done
[ -n "$folder" ] || fail 8 "--folder is missing; 'prove.sh --help' lists the options"
for number in "$position" "$copies" "$seed"; do
    is_number "$number" || fail 8 "$number is no number; --position, --copies and --seed take one"
done
[ "$position" -ge 1 ] || fail 8 "--position $position: the first backup in a file is number 1"
{ [ "$copies" -ge 1 ] && [ "$copies" -le 999 ]; } || fail 8 "--copies $copies: give a number from 1 to 999"
if [ -z "$clean" ]; then
    [ -n "$disks" ] || [ -n "$data" ] || fail 8 "give a database: --backup PATH or --data FILE"
    [ -z "$disks" ] || [ -z "$data" ] || fail 8 "give either --backup or --data"
fi
command -v "$sqlcmd" >/dev/null || fail 4 "there is no $sqlcmd on the PATH; install sqlcmd, or name it with the variable SQLCMD"
if [ -z "$clean" ]; then
    "$mdfsck" prove plan --help >/dev/null 2>&1 ||
        fail 4 "$mdfsck cannot be run or is too old; install it, or name it with the variable MDFSCK"
    if [ -d "$folder" ] && [ -n "$(ls -A "$folder" 2>/dev/null)" ]; then fail 8 "$folder is not empty; name a new folder"; fi
    # The server's account must get at the files too: in a folder with a setgid bit it does so by its group.
    umask 007
    if ! mkdir -p "$folder" 2>/dev/null || ! mkdir "$folder/files" "$folder/cases" "$folder/sql" 2>/dev/null; then
        fail 4 "$folder cannot be written to; name another folder with --folder"
    fi
fi
folder=$(cd "$folder" 2>/dev/null && pwd) || fail 8 "there is no folder $folder"
[ -z "$clean" ] || [ -f "$folder/made.txt" ] || fail 8 "$folder has no made.txt: no run of the kit was there"
noted() { [ ! -e "$folder/server.txt" ] || sed -n "s/^$1$tab//p" "$folder/server.txt"; } # NAME
[ -z "$clean" ] || [ -n "$server_folder" ] || server_folder=$(noted folder)
[ -n "$server_folder" ] || server_folder=$folder
case $server_folder in *\\*) separator="\\" ;; *) separator=/ ;; esac
while [ "$server_folder" != "${server_folder%[\\/]}" ]; do server_folder=${server_folder%[\\/]}; done
server_files=$server_folder${separator}files$separator

# shellcheck source=server.sh
. "$here/server.sh"
if [ -n "$clean" ]; then
    steps=9000
    # On another server, none of the databases exists, and the list would be lost.
    if [ -s "$folder/made.txt" ]; then
        step server run "$prefix" || fail 4 "the server does not answer: $(why)"
        name=$(noted name)
        [ -z "$name" ] || [ "$name" = "$(told name)" ] ||
            fail 4 "nothing was removed: the run in $folder was on the server $name, but this is $(told name); if it is the same server under a new name, delete $folder/server.txt"
    fi
fi
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
trap 'exit 141' PIPE
[ -z "$clean" ] || exit 0
# Not ':', as a redirection that fails ends the shell at a command of this kind.
true >"$folder/made.txt" || fail 4 "$folder/made.txt cannot be written; is the disk full?"
run_name=$prefix$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')_

# ---- what it will do --------------------------------------------------------------------------------------------------

step server run "$run_name" || fail 4 "the server does not answer: $(why)"
version=$(told version)
[ -n "$version" ] || fail 4 "the server does not say its version: $(why)"
[ "$(told taken)" = 0 ] || fail 4 "databases on this server have names that begin with $run_name; run the kit again"
[ "$(told sysadmin)" = 1 ] || fail 4 "the login is not in the role sysadmin, which CHECKDB and EMERGENCY need"
printf 'name\t%s\nfolder\t%s\n' "$(told name)" "$server_folder" >"$folder/server.txt" ||
    fail 4 "$folder/server.txt cannot be written; is the disk full?"
say "server: SQL Server $version, $(told edition), collation $(told collation)"

names=$folder/names.txt size=0 moves=''
if [ -n "$disks" ]; then
    step filelist disks "$disks" position "$position" || fail 4 "the backup cannot be read: $(why)"
    list=$("$mdfsck" prove files "$reply" --to "${server_files}base$separator") || exit 4
    size=$(printf '%s\n' "$list" | sed -n "s/^size$tab//p")
    moves=$(printf '%s\n' "$list" | sed -n "s/^moves$tab//p")
    printf '%s\n' "$list" | sed -n "s/^file$tab//p" >"$names"
else
    true >"$names" || fail 4 "$names cannot be written; is the disk full?"
    eval "set -- $data"
    for file in "$@"; do
        [ -r "$file" ] || fail 4 "$file cannot be read; name a file of a database that is shut down"
        ! grep -qxF -e "$(basename "$file")" "$names" || fail 8 "two files are named $(basename "$file"); rename one"
        size=$((size + $(wc -c <"$file")))
        printf '%s\n' "$(basename "$file")" >>"$names"
    done
fi
free() { df -Pk "$folder" | awk 'NR == 2 { printf "%.0f", $4 * 1024 }'; }
mb() { echo "$((($1 + 1048575) / 1048576)) MB"; }
say "this will, in $folder:"
if [ -n "$disks" ]; then say "  restore the backup as ${run_name}base"; else say "  copy the files, and attach the copy as ${run_name}base"; fi
say "  make it read-only, and detach it"
say "  damage $copies copies of it, seeds from $seed; attach each as ${run_name}NNN, run DBCC CHECKDB and mdfsck, drop it"
say "  the sound copy also gets DBCC CHECKALLOC and CHECKCATALOG"
say "  other databases are not touched; the databases made are listed in made.txt, and are dropped at the end or after Ctrl+C"
say "space: $(mb $((size * 3))) in use at a time, and up to $(mb "$size") for each copy with a difference, compressed; free: $(mb "$(free)")"
[ "$(free)" -ge $((size * 3)) ] || fail 4 "the disk of $folder has too little space; name another folder with --folder"
if [ -z "$yes" ]; then
    printf 'Begin? [y/N] '
    read -r answer || answer=''
    case $answer in y | Y | yes) ;; *) fail 8 "nothing was done; answer y, or give --yes" ;; esac
fi

# ---- the sound database -----------------------------------------------------------------------------------------------

taken() {
    forget "$1"
    fail 4 "a database $1 is on the server already, and was not touched; run the kit again"
}
# Attaches the files in a folder of the kit.
attach() { # NAME FOLDER
    clause=''
    while IFS= read -r file; do
        clause="${clause:+$clause, }(FILENAME = N'$(sql_text "$server_files$2$separator$file")')"
    done <"$names"
    note "$1"
    step attach database "$1" files "$clause"
    [ "$(told state)" != TAKEN ] || taken "$1"
}
# An empty folder, in which the server may write.
empty() { # FOLDER
    rm -rf "$1"
    mkdir "$1" && chmod g+rwx "$1"
}
base=${run_name}base
chmod g+rwx "$folder/files"
empty "$folder/files/base"
if [ -n "$disks" ]; then
    note "$base"
    step restore database "$base" disks "$disks" position "$position" moves "$moves"
    [ "$(told state)" != TAKEN ] || taken "$base"
    [ "$(told state)" = ONLINE ] || fail 4 "the backup cannot be restored: $(why)"
else
    eval "set -- $data"
    for file in "$@"; do
        run cp "$file" "$folder/files/base/" || fail 4 "$file cannot be copied to $folder/files/base"
        chmod ug+rw "$folder/files/base/$(basename "$file")"
    done
    attach "$base" base
    [ "$(told state)" = ONLINE ] || fail 4 "the files cannot be attached: $(why)"
fi
own_step detach "$base"
[ "$(told state)" != FOREIGN ] || fail 4 "the server does not have the files of the database in $server_files"
[ "$(told state)" = NONE ] || fail 4 "the database cannot be detached: $(why)"
forget "$base"
while IFS= read -r file; do
    [ -r "$folder/files/base/$file" ] ||
        fail 4 "$folder/files/base/$file cannot be read; run the kit as a user who can read the server's files, or set --server-folder"
done <"$names"

# ---- one copy ---------------------------------------------------------------------------------------------------------

# All files of the database, from one folder into another. What the second has stays.
fill() { # FROM TO
    while IFS= read -r file; do
        [ -e "$2/$file" ] || run cp "$1/$file" "$2/$file" || return 1
        chmod ug+rw "$2/$file" 2>/dev/null
    done <"$names"
}
stopped='' stuck=''
# Drops the database of a copy, whose place the next one needs.
release() { # NAME
    drop "$1" >/dev/null && return 0
    stuck="the database $1 is still on the server"
    return 1
}
# Brings the damaged files onto the server: state has ONLINE or EMERGENCY if CHECKDB can run, way how that was done.
bring() { # NAME
    fill "$folder/files/damaged" "$folder/files/server" || return 1
    attach "$1" server
    state=$(told state) way=attached
    if [ -z "$state" ] || [ "$state" = NONE ]; then
        way="attach refused ($(read_reply why | cut -d : -f 1)), files exchanged"
        # The server refuses the files: it attaches sound ones, and gets the damaged ones while they are offline.
        release "$1" || return 1
        empty "$folder/files/server"
        fill "$folder/files/base" "$folder/files/server" || return 1
        attach "$1" server
        [ "$(told state)" = ONLINE ] || return 0
        own_step offline "$1"
        state=$(told state)
        [ "$state" = OFFLINE ] || return 0
        while IFS= read -r file; do
            # Into the same file, whose owner and rights are right already.
            cat "$folder/files/damaged/$file" 2>/dev/null >"$folder/files/server/$file" || return 1
        done <"$names"
        own_step online "$1"
        state=$(told state)
    fi
    if [ "$state" != ONLINE ]; then
        own_step emergency "$1"
        state=$(told state)
        way="$way, EMERGENCY"
    fi
}
# The output goes to FILE. outcome is empty if there is a result to compare, or else the reason why not.
dbcc() { # DATABASE COMMAND OPTIONS FILE
    step dbcc database "$1" command "$2" options "$3"
    outcome=$(read_reply outcome)
    # CHECKCATALOG has no TABLOCK.
    if [ "$outcome" = no-snapshot ] && [ "$2" != CHECKCATALOG ]; then
        case $way in *TABLOCK) ;; *) way="$way, no snapshot: WITH TABLOCK" ;; esac
        step dbcc database "$1" command "$2" options "${3:+$3, }TABLOCK"
        outcome=$(read_reply outcome)
    fi
    # grep has status 1 if there is no line, and 2 if it cannot write.
    printed >"$4"
    [ $? -le 1 ] || outcome=unwritten
    case $outcome in
    complete) outcome='' ;;
    unwritten) outcome="$4 cannot be written; is the disk full?" ;;
    cut-off) outcome="$2 was cut off: $(why)" ;;
    *) outcome="$2 gave no result: $(why)" ;;
    esac
}
# What only the sound copy gets: CHECKALLOC and CHECKCATALOG of both. A command without a result leaves its reason.
listings() { # DATABASE
    for scope in alloc catalog; do
        dbcc "$1" "$(printf 'check%s' "$scope" | tr '[:lower:]' '[:upper:]')" '' "$case/check$scope.txt"
        [ -z "$outcome" ] || printf '%s\n' "$outcome" >"$case/check$scope.reason"
        run "$mdfsck" check "--$scope" --output "$case/mdfsck-check$scope.txt" "$folder/files/damaged" 2>>"$case/mdfsck.err"
        [ $(($? & 12)) = 0 ] || printf 'mdfsck check --%s failed; see mdfsck.err\n' "$scope" >"$case/check$scope.reason"
    done
    outcome=''
}
verdict() { # STATUS TEXT
    # A tab or a line break would begin another cell.
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$kind" "$damage_seed" "$1" "$way" "$(printf '%s' "$2" | tr '\t\n' '  ')" >>"$folder/cases.tsv" ||
        fail 4 "$folder/cases.tsv cannot be written; is the disk full?"
    say "$number $kind, seed $damage_seed: $1${way:+ ($way)}${2:+: $2}"
}
# Whether all messages of both were compared.
is_whole() {
    case $(head -n 1 "$case/compare.json") in *'"hidden":0,'*'"whole":true'*) ;; *) return 1 ;; esac
}
copy() {
    way=''
    case=$folder/cases/$number-$kind
    mkdir "$case"
    if [ -n "$stuck" ]; then
        verdict stopped "$stuck"
        stopped=1
        return
    fi
    if [ "$(free)" -lt $((size * 2)) ]; then
        verdict stopped "the disk of $folder has too little space left"
        stopped=1
        return
    fi
    empty "$folder/files/damaged"
    empty "$folder/files/server"
    if [ "$kind" != sound ]; then
        if ! run "$mdfsck" lab damage "$folder/files/base" --kind "$kind" --seed "$damage_seed" -o "$folder/files/damaged" \
            >"$case/damage.txt" 2>&1; then
            verdict not-offered "$(tail -n 1 "$case/damage.txt")"
            return
        fi
    fi
    if ! fill "$folder/files/base" "$folder/files/damaged" || ! bring "$run_name$number"; then
        verdict stopped "${stuck:-the files cannot be copied within $folder}"
        stopped=1
        return
    fi
    options='TABLERESULTS, ALL_ERRORMSGS'
    [ "$kind" = sound ] || options="$options, NO_INFOMSGS"
    case $state in
    ONLINE | EMERGENCY) dbcc "$run_name$number" CHECKDB "$options" "$case/checkdb.txt" ;;
    *) outcome="the server opens these files in no way: $(why)" ;;
    esac
    run "$mdfsck" check --tableresults --output "$case/mdfsck.csv" "$folder/files/damaged" 2>"$case/mdfsck.err"
    mdfsck_status=$?
    if [ "$kind" = sound ] && [ -z "$outcome" ]; then listings "$run_name$number"; fi
    if [ -n "$outcome" ]; then
        keep
        verdict refused "$outcome; mdfsck: exit status $mdfsck_status"
        release "$run_name$number"
        return
    fi
    run "$mdfsck" compare-dbcc --json "$case/checkdb.txt" "$folder/files/damaged" >"$case/compare.json" 2>"$case/compare.err"
    compared=$?
    if [ $((compared & 12)) != 0 ]; then
        keep
        verdict refused "mdfsck compare-dbcc ended with status $compared: $(tail -n 1 "$case/compare.err")"
    elif [ $((compared & 1)) != 0 ]; then
        keep
        run "$mdfsck" compare-dbcc "$case/checkdb.txt" "$folder/files/damaged" >"$case/compare.txt" 2>/dev/null
        verdict differ "see $case"
    elif is_whole; then
        verdict agree ''
    else
        keep
        verdict refused "the results are not whole, so that they show no agreement"
    fi
    [ -z "$keep_all" ] || [ -e "$case/files.tar.gz" ] || keep
    release "$run_name$number"
}
# The damaged files, for whoever looks into a difference.
keep() {
    # A part of them would mislead.
    (cd "$folder/files/damaged" && tar -cf - .) | gzip >"$case/files.tar.gz" || rm -f "$case/files.tar.gz"
}

# ---- all copies -------------------------------------------------------------------------------------------------------

number=000 kind=sound damage_seed=0
printf 'server\t%s\n' "$version" >"$folder/run.tsv"
copy
if [ -z "$stopped" ]; then
    "$mdfsck" prove plan --copies "$copies" --seed "$seed" >"$folder/plan.tsv" || fail 4 "mdfsck prove plan failed"
    while IFS=$tab read -r number kind damage_seed; do
        copy
        [ -z "$stopped" ] || break
    done <"$folder/plan.tsv"
fi
"$mdfsck" prove report "$folder"
status=$?
say "all results: $folder/index.html"
exit "$status"
