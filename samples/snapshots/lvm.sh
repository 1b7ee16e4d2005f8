#!/bin/sh
# Makes a snapshot of a logical volume of LVM and mounts it read-only; all paths must be in the file system of one volume:
#   mdfsck check --snapshot-with samples/snapshots/lvm.sh --snapshot-argument 20G PATH...
# The argument is the room for what the server writes during the check; it must be free in the volume group, and if it fills up,
# the snapshot is lost and the check ends with read errors. Without it: 10 % of the volume. Thin volumes need no room.
# Runs as root. LVM stops the file system for a moment, so that the snapshot is of one moment.
set -eu
places=/run
# mktemp makes such names.
x='[A-Za-z0-9]'
name="mdfsck-$x$x$x$x$x$x"

# mdfsck ends this script and its children after Ctrl+C. A step of LVM that was ended half-way leaves volumes that only LVM can mend,
# so each runs in a session of its own, and the script waits for it. If mdfsck kills this script meanwhile, the shell around the step
# still has stdout open. So mdfsck knows that the step still runs, and leaves the removal to a later run.
trap 'exit 143' INT TERM HUP
step() { setsid sh -c '"$@" >/dev/null; exit $?' step "$@"; }

case ${1-} in create | remove) size= ;; *) size=${1-} && shift ;; esac
case ${1-} in
create)
    shift
    device=$(findmnt -n -o SOURCE --target "$1")
    target=$(findmnt -n -o TARGET --target "$1")
    type=$(findmnt -n -o FSTYPE --target "$1")
    for path in "$@"; do
        [ "$(findmnt -n -o TARGET --target "$path")" = "$target" ] || { echo "$path: is not in $target, as $1 is" >&2 && exit 1; }
        # The snapshot lacks what is mounted below, and a link in it leads to the file in use.
        other=$(find "$(realpath -- "$path")" -mindepth 1 -xdev \( -type l -o -type d -exec mountpoint -q -- {} \; \) -print -quit)
        [ -z "$other" ] || { echo "$other: is a link or another file system, which the snapshot lacks; name its files" >&2 && exit 1; }
    done
    lv=$(lvs --noheadings -o lv_full_name -- "$device" | tr -d ' ')
    # lvs has already told why the device is no logical volume.
    [ -n "$lv" ] || exit 1
    thin=$(lvs --noheadings -o pool_lv -- "$device" | tr -d ' ')
    mount=$(mktemp -d "$places/mdfsck-XXXXXX")
    own=$(basename -- "$mount")
    # The lines come first, so that mdfsck can have everything removed even if this script is killed.
    for path in "$@"; do
        path=$(realpath -- "$path")
        echo "$mount${path#"${target%/}"}"
    done
    if [ -n "$thin" ]; then
        step lvcreate --quiet --snapshot --setactivationskip n --name "$own" "$lv"
    elif [ -n "$size" ]; then
        step lvcreate --quiet --snapshot --size "$size" --name "$own" "$lv"
    else
        step lvcreate --quiet --snapshot --extents 10%ORIGIN --name "$own" "$lv"
    fi
    options=ro
    # XFS refuses two file systems with the same UUID.
    [ "$type" != xfs ] || options=ro,nouuid
    step mount -t "$type" -o "$options" "/dev/${lv%%/*}/$own" "$mount"
    ;;
remove)
    shift
    for line in "$@"; do
        # shellcheck disable=SC2254 # $name is a pattern
        case $line in
        */../* | */..) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        "$places"/$name | "$places"/$name/*) ;;
        *) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        esac
        own=${line#"$places"/}
        own=${own%%/*}
        ! mountpoint -q "$places/$own" || step umount "$places/$own"
        lv=$(lvs --noheadings -o lv_full_name --select "lv_name=$own" | tr -d ' ')
        [ -z "$lv" ] || step lvremove --quiet --yes "$lv"
        [ ! -e "$places/$own" ] || rmdir -- "$places/$own"
    done
    ;;
*)
    echo "usage: $0 [SIZE] create PATH... | remove LINE..." >&2
    exit 2
    ;;
esac
