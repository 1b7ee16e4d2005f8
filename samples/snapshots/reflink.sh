#!/bin/sh
# Copies files and folders; on XFS, btrfs and others the copies share their blocks with the files, and take no time and space:
#   mdfsck check --snapshot-with samples/snapshots/reflink.sh PATH...
# The files are copied one after another, logs last. So use this script for files that no server writes to meanwhile: a server
# that is stopped, a replica that is paused, or a database that suspend.ps1 has suspended.
# --snapshot-argument DIR: a folder for the copies instead of the folder of the first path. Only in the same file system do
# copies share blocks; in any other they are whole copies.
set -eu
# mktemp makes such names.
x='[A-Za-z0-9]'
name=".mdfsck-$x$x$x$x$x$x"

refuse() { echo "$1: is no snapshot of this script" >&2 && exit 1; }

# The files of folder $1 whose names fit the other arguments of find, into folder $2. A link to a file is copied as this file. Links to
# folders are left out, as mdfsck does not follow them.
copy() { # FROM TO TEST...
    from=$1 to=$2
    shift 2
    (cd -- "$from" && find . -name "$name" -prune -o -xtype f "$@" \
        -exec cp --parents --reflink=auto --preserve=mode,timestamps -t "$to" -- {} +)
}

case ${1-} in create | remove) place= ;; *) place=${1-} && shift ;; esac
case ${1-} in
create)
    shift
    if [ -z "$place" ]; then
        place=$1
        [ -d "$place" ] || place=$(dirname -- "$place")
    fi
    snapshot=$(mktemp -d -- "$(realpath -- "$place")/.mdfsck-XXXXXX")
    # The lines come first, so that mdfsck can have everything removed even if this script is killed.
    number=0
    for path in "$@"; do
        number=$((number + 1))
        echo "$snapshot/$number"
    done
    for logs in no yes; do
        test='!'
        [ $logs = no ] || test=
        number=0
        for path in "$@"; do
            number=$((number + 1))
            mkdir -p -- "$snapshot/$number"
            # $test is a word or nothing.
            # shellcheck disable=SC2086
            if [ -d "$path" ]; then
                copy "$path" "$snapshot/$number" $test -iname '*.ldf'
            else
                file=$(basename -- "$path")
                case $file in *.[lL][dD][fF]) is=yes ;; *) is=no ;; esac
                [ $is != $logs ] || cp --reflink=auto --preserve=mode,timestamps -- "$path" "$snapshot/$number/$file"
            fi
        done
    done
    ;;
remove)
    shift
    for line in "$@"; do
        case $line in */../* | */..) refuse "$line" ;; esac
        case ${line##*/} in '' | *[!0-9]*) refuse "$line" ;; esac
        # shellcheck disable=SC2254 # $name is a pattern
        case ${line%/*} in
        /*/$name | /$name) rm -rf -- "${line%/*}" ;;
        *) refuse "$line" ;;
        esac
    done
    ;;
*)
    echo "usage: $0 [DIR] create PATH... | remove LINE..." >&2
    exit 2
    ;;
esac
