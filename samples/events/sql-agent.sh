#!/bin/sh
# Raises an event as an error in a SQL Server's log, so that the alerts of SQL Agent on its severity fire:
#   SQLCMDSERVER=PROD1 mdfsck watch ... --on-event samples/events/sql-agent.sh
# Severity 16 is a finding; RAISERROR WITH LOG needs ALTER TRACE. No text of the event becomes T-SQL: it goes in as a number of bytes in
# hexadecimal, which T-SQL turns into text.
set -eu
case $MDFSCK_EVENT in
finding-new | failed | finding-confirmed) severity=16 ;;
*) severity=10 ;;
esac
hex() { od -An -v -tx1 | tr -d ' \n'; }
text=$(printf 'mdfsck: %s: %s (%s)' "$MDFSCK_EVENT" "$MDFSCK_DATABASE" "$MDFSCK_COUNT" | head -c 400 | iconv -f UTF-8 -t UTF-16LE -c | hex)
exec "${SQLCMD:-sqlcmd}" -b -x -Q "DECLARE @text nvarchar(400) = CONVERT(nvarchar(400), 0x$text); RAISERROR(N'%s', $severity, 1, @text) WITH LOG;"
