# Writes an event to the Windows event log, as eventcreate does:
#   mdfsck watch ... --on-event powershell.exe --event-argument=-NoProfile --event-argument=-File --event-argument=C:\mdfsck\eventlog.ps1
# Event 898 is beside 823 to 825, on which most servers have alerts. The text is passed as one argument of a list, never as a command.
$ErrorActionPreference = 'Stop'
$first = [Console]::In.ReadLine()
$line = $first | ConvertFrom-Json
$type = switch ($env:MDFSCK_EVENT) {
    { $_ -in 'finding-new', 'failed' } { 'ERROR'; break }
    { $_ -in 'finding-confirmed', 'promise-broken', 'backup-missing' } { 'WARNING'; break }
    default { 'INFORMATION' }
}
# Quotes and control characters would end the argument on its way.
$text = "$($env:MDFSCK_EVENT): $($env:MDFSCK_DATABASE) ($($env:MDFSCK_COUNT)): $($line.text)" -replace '[\x00-\x1f"\\]', ' '
if ($text.Length -gt 1000) { $text = $text.Substring(0, 1000) }
& eventcreate.exe /T $type /ID 898 /L APPLICATION /SO mdfsck /D $text
exit $LASTEXITCODE
