#!/bin/sh
# Makes a snapshot of each ZFS dataset that has one of the paths, all of them in one step:
#   mdfsck check --snapshot-with samples/snapshots/zfs.sh PATH...
# ZFS shows the files of a snapshot in the folder .zfs/snapshot of its dataset. Datasets of one pool are of one moment; put data
# and log into one pool. Needs the right to make and delete snapshots: root, or 'zfs allow USER snapshot,destroy,mount DATASET'.
set -eu

# mdfsck ends this script and its children after Ctrl+C. A step of ZFS must not end half-way, so each runs in a session of its own,
# and the script waits for it. If mdfsck kills this script meanwhile, the shell around the step still has stdout open. So mdfsck knows
# that the step still runs, and leaves the removal to a later run. FreeBSD has no setsid.
trap 'exit 143' INT TERM HUP
step() {
    set -- sh -c '"$@" >/dev/null; exit $?' step "$@"
    if command -v setsid >/dev/null; then setsid "$@"; else "$@"; fi
}

# The folder in which the dataset of a path is mounted. It has the folder .zfs, which may be hidden. The property mountpoint may be
# "legacy", and then does not tell.
mounted() {
    folder=$(realpath -- "$1")
    while [ ! -d "${folder%/}/.zfs/snapshot" ]; do
        [ "$folder" != / ] || return 1
        folder=$(dirname -- "$folder")
    done
    echo "${folder%/}"
}

case ${1-} in
create)
    shift
    # No other snapshot has this name.
    folder=$(mktemp -d -t tmp.XXXXXXXXXX)
    rmdir -- "$folder"
    name=mdfsck-$(basename -- "$folder" | tr -cd 'A-Za-z0-9')
    datasets=$(zfs list -H -o name -- "$@" | sort -u)
    pools=$(printf '%s\n' "$datasets" | sed 's|/.*||' | sort -u)
    if [ "$(printf '%s\n' "$pools" | wc -l)" -ne 1 ]; then
        echo "the paths are in several pools, and ZFS makes snapshots of one moment only in one: $pools" >&2
        exit 1
    fi
    # FreeBSD has no mountpoint. There, only datasets are noticed.
    below='mountpoint -q --'
    command -v mountpoint >/dev/null || below=false
    for path in "$@"; do
        mounted "$path" >/dev/null || { echo "$path: no folder above it has .zfs/snapshot" >&2 && exit 1; }
        # The snapshot of a dataset lacks what is mounted below, and a link in it leads to the file in use.
        # shellcheck disable=SC2086 # $below is a command with its options
        other=$(find "$(realpath -- "$path")" -mindepth 1 -name .zfs -prune -o \
            \( -type l -o -type d \( -exec test -d '{}/.zfs/snapshot' \; -o -exec $below {} \; \) \) -print -quit)
        [ -z "$other" ] || { echo "$other: is a link, a dataset or another file system, which the snapshot lacks; name its files" >&2 && exit 1; }
    done
    # The lines come first, so that mdfsck can have everything removed even if this script is killed.
    for path in "$@"; do
        mount=$(mounted "$path")
        path=$(realpath -- "$path")
        echo "$mount/.zfs/snapshot/$name${path#"$mount"}"
    done
    # One dataset in each line.
    IFS='
'
    set -f
    # shellcheck disable=SC2086
    set -- $datasets
    for dataset in "$@"; do
        shift
        set -- "$@" "$dataset@$name"
    done
    step zfs snapshot "$@"
    ;;
remove)
    shift
    for line in "$@"; do
        case $line in
        */../* | */..) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        /*/.zfs/snapshot/mdfsck-tmp* | /.zfs/snapshot/mdfsck-tmp*) ;;
        *) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        esac
        mount=${line%%/.zfs/snapshot/*}
        name=${line#"$mount"/.zfs/snapshot/}
        dataset=$(zfs list -H -o name -- "${mount:-/}")
        snapshot=$dataset@${name%%/*}
        ! zfs list -H -t snapshot -o name -- "$snapshot" >/dev/null 2>&1 || step zfs destroy -- "$snapshot"
    done
    ;;
*)
    echo "usage: $0 create PATH... | remove LINE..." >&2
    exit 2
    ;;
esac
