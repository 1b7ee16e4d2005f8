#!/bin/sh
# Sends each line of an event to syslog: mdfsck watch ... --on-event samples/events/syslog.sh
set -eu
case $MDFSCK_EVENT in
finding-new | failed) priority=daemon.err ;;
finding-confirmed | promise-broken | backup-missing) priority=daemon.warning ;;
*) priority=daemon.info ;;
esac
# JSON has no control characters outside of escapes: a line stays a line.
exec logger -t mdfsck -p "$priority"
