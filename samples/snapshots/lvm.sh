#!/bin/sh
# Makes a snapshot of a logical volume of LVM and mounts it read-only; all paths must be in the file system of one volume:
#   mdfsck check --snapshot-with samples/snapshots/lvm.sh --snapshot-argument 20G PATH...
# The argument is the room for what the server writes during the check; it must be free in the volume group, and if it fills up,
# the snapshot is lost and the check ends with read errors. Without it: 10 % of the volume. Thin volumes need no room.
# Runs as root. LVM stops the file system for a moment, so that the snapshot is of one moment.
set -eu
places=/run

case ${1-} in create | remove) size= ;; *) size=${1-} && shift ;; esac
case ${1-} in
create)
    shift
    device=$(findmnt -n -o SOURCE --target "$1")
    target=$(findmnt -n -o TARGET --target "$1")
    type=$(findmnt -n -o FSTYPE --target "$1")
    for path in "$@"; do
        [ "$(findmnt -n -o TARGET --target "$path")" = "$target" ] || { echo "$path: is not in $target, as $1 is" >&2 && exit 1; }
    done
    lv=$(lvs --noheadings -o lv_full_name -- "$device" | tr -d ' ')
    # lvs has already told why the device is no logical volume.
    [ -n "$lv" ] || exit 1
    thin=$(lvs --noheadings -o pool_lv -- "$device" | tr -d ' ')
    mount=$(mktemp -d "$places/mdfsck-XXXXXX")
    name=$(basename -- "$mount")
    # The lines come first, so that mdfsck can have everything removed even if this script is killed.
    for path in "$@"; do
        path=$(realpath -- "$path")
        echo "$mount${path#"${target%/}"}"
    done
    if [ -n "$thin" ]; then
        lvcreate --quiet --snapshot --setactivationskip n --name "$name" "$lv" >/dev/null
    elif [ -n "$size" ]; then
        lvcreate --quiet --snapshot --size "$size" --name "$name" "$lv" >/dev/null
    else
        lvcreate --quiet --snapshot --extents 10%ORIGIN --name "$name" "$lv" >/dev/null
    fi
    options=ro
    # XFS refuses two file systems with the same UUID.
    [ "$type" != xfs ] || options=ro,nouuid
    mount -t "$type" -o "$options" "/dev/${lv%%/*}/$name" "$mount"
    ;;
remove)
    shift
    for line in "$@"; do
        case $line in
        */../* | */..) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        "$places"/mdfsck-?????? | "$places"/mdfsck-??????/*) ;;
        *) echo "$line: is no snapshot of this script" >&2 && exit 1 ;;
        esac
        name=${line#"$places"/}
        name=${name%%/*}
        ! mountpoint -q "$places/$name" || umount "$places/$name"
        lv=$(lvs --noheadings -o lv_full_name --select "lv_name=$name" | tr -d ' ')
        [ -z "$lv" ] || lvremove --quiet --yes "$lv" >/dev/null
        [ ! -e "$places/$name" ] || rmdir -- "$places/$name"
    done
    ;;
*)
    echo "usage: $0 [SIZE] create PATH... | remove LINE..." >&2
    exit 2
    ;;
esac
