@echo off
rem Checks the backups of the night, for Task Scheduler (nightly.xml) or by hand. Put it beside mdfsck.exe, for example into
rem D:\mdfsck, which the account of the task may write to; no other account should be able to.
setlocal
set "backups=D:\Backups"
set "here=%~dp0"

rem A folder stands for the newest backup of each database. One that takes longer than a night: a line like this with --window 3h and
rem its file in place of the folder, the same file until it is read to its end (docs/guides/nights.md).
rem --log sends DBCC's closing line to the Windows event log. A run that cannot look writes no report: none of last night stays.
if exist "%here%nightly.txt" del "%here%nightly.txt"
"%here%mdfsck.exe" check --no-infomsgs --within 14d --history "%here%checks.db" --output "%here%nightly.txt" --log "%backups%" 2>"%here%nightly.log"
set status=%errorlevel%

rem Bits: 1 corruption, 4 it could not look, 8 wrong command, 16 not verified to its end or a promise that is not kept.
rem The next night writes over both files: keep those of a night that was not clean.
if not %status%==0 del /q "%here%last-problem.*" 2>nul
if not %status%==0 for %%e in (txt log) do if exist "%here%nightly.%%e" copy /y "%here%nightly.%%e" "%here%last-problem.%%e" >nul
rem Here is the place to tell somebody at once; bit 16 alone can wait for the morning.
set /a "urgent=status & 13"
if not %urgent%==0 echo mdfsck: exit status %status%, see last-problem.txt and last-problem.log in %here%

rem What Task Scheduler shows as Last Run Result.
exit /b %status%
