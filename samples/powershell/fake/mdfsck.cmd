@echo off
rem The same for Windows.
(echo %*)>"%MDFSCK_FAKE_ARGUMENTS%"
type "%MDFSCK_FAKE_FIXTURE%"
echo mdfsck: what went wrong>&2
exit %MDFSCK_FAKE_STATUS%
