#!/bin/sh
# Makes a read-only snapshot of a btrfs subvolume; all paths must be in one subvolume, so that they are of one moment:
#   mdfsck check --snapshot-with samples/snapshots/btrfs.sh PATH...
# The snapshot lies in a folder .mdfsck-XXXXXX of the subvolume. Needs btrfs-progs, and the right to make and delete snapshots
# (root, or the mount option user_subvol_rm_allowed).
set -eu
# mktemp makes such names.
x='[A-Za-z0-9]'
name=".mdfsck-$x$x$x$x$x$x"

# mdfsck ends this script and its children after Ctrl+C. A step of btrfs must not end half-way, so each runs in a session of its own,
# and the script waits for it. If mdfsck kills this script meanwhile, the shell around the step still has stdout open. So mdfsck knows
# that the step still runs, and leaves the removal to a later run.
trap 'exit 143' INT TERM HUP
step() { setsid sh -c '"$@" >/dev/null; exit $?' step "$@"; }

# The root of the subvolume of a path has inode 256.
subvolume() {
    folder=$(realpath -- "$1")
    while [ ! -d "$folder" ] || [ "$(stat -c %i -- "$folder")" != 256 ]; do
        [ "$folder" != / ] || return 1
        folder=$(dirname -- "$folder")
    done
    [ "$(stat -f -c %T -- "$folder")" = btrfs ] && echo "$folder"
}

case ${1-} in
create)
    shift
    root=$(subvolume "$1") || { echo "$1: is in no btrfs subvolume" >&2 && exit 1; }
    for path in "$@"; do
        [ "$(subvolume "$path")" = "$root" ] || { echo "$path: is not in the subvolume $root" >&2 && exit 1; }
        # The snapshot lacks subvolumes and what is mounted below, and a link in it leads to the file in use. Snapshots of this script
        # are subvolumes too.
        other=$(find "$(realpath -- "$path")" -mindepth 1 -xdev -name "$name" -prune -o \
            \( -type l -o -type d \( -inum 256 -o -exec mountpoint -q -- {} \; \) \) -print -quit)
        [ -z "$other" ] || { echo "$other: is a link, a subvolume or another file system, which the snapshot lacks; name its files" >&2 && exit 1; }
    done
    folder=$(mktemp -d -- "${root%/}/.mdfsck-XXXXXX")
    # The lines come first, so that mdfsck can have everything removed even if this script is killed.
    for path in "$@"; do
        path=$(realpath -- "$path")
        path=${path#"${root%/}"}
        echo "$folder/snapshot$path"
    done
    step btrfs subvolume snapshot -r "$root" "$folder/snapshot"
    ;;
remove)
    shift
    for line in "$@"; do
        # shellcheck disable=SC2254 # $name is a pattern
        case $line in
        */../* | */..) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        /$name/snapshot | /$name/snapshot/* | /*/$name/snapshot | /*/$name/snapshot/*) ;;
        *) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        esac
        # Everything up to the first name of this script.
        # shellcheck disable=SC2295
        before=${line%%/$name/snapshot*}
        own=${line#"$before"/}
        folder=$before/${own%%/*}
        [ ! -e "$folder/snapshot" ] || step btrfs subvolume delete "$folder/snapshot"
        [ ! -e "$folder" ] || rmdir -- "$folder"
    done
    ;;
*)
    echo "usage: $0 create PATH... | remove LINE..." >&2
    exit 2
    ;;
esac
