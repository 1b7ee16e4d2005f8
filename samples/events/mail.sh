#!/bin/sh
# Mails an event: mdfsck watch ... --on-event samples/events/mail.sh --event-argument dba@example.com
# JSON lines come on standard input and become the body of the mail; nothing of them is ever part of a command.
set -eu
to=${1:?address of the reader}
# A name may hold anything; a header holds one line of plain text.
database=$(printf '%s' "$MDFSCK_DATABASE" | tr -cd 'A-Za-z0-9 ._-' | cut -c1-100)
{
    printf 'To: %s\nSubject: mdfsck: %s: %s (%s)\nContent-Type: text/plain; charset=utf-8\n\n' \
        "$to" "$MDFSCK_EVENT" "$database" "$MDFSCK_COUNT"
    cat
} | "${SENDMAIL:-/usr/sbin/sendmail}" -i -- "$to"
