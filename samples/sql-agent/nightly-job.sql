/*
Creates the job "mdfsck: nightly check" for SQL Server Agent, or brings it up to date: schedule, notifications and history of a job
that is there already stay. Run it as sysadmin, after a look at the five variables. It holds no password: the step runs as the
service account of the Agent, or as a proxy (add @proxy_name to step 1), which must be able to read the backups and to write to
@folder. Keep that folder closed to everybody else.

What the exit status says, and what becomes of it (CmdExec knows one successful code, @cmdexec_success_code):
     0     sound, or as much as fits into the window, in time       the job succeeds
    16     something was not verified, or --within is not kept      error of severity 16, the job fails: read it in the morning
     1     corruption                                               error of severity 19, the job fails: wake somebody
     4, 8  it could not look, or the command is wrong               the same
Bits add: 17 is 1 and 16. Errors are raised WITH LOG, so that alerts on their severity fire, and monitoring of the ERRORLOG sees
them; such an alert may be for message 50000 as well. If a 16 is no news, accept its reason with --allow ID, and the others still count.
*/
USE msdb;
SET NOCOUNT ON;
SET XACT_ABORT ON;

DECLARE @mdfsck nvarchar(200) = N'D:\mdfsck\mdfsck.exe';
DECLARE @folder nvarchar(200) = N'D:\mdfsck';
-- Of each database the newest full backup with its newest differential. One that takes longer than a night: a job like this with
-- --window 3h and its file, the same one until it is read to its end (docs/guides/nights.md).
DECLARE @backups nvarchar(200) = N'D:\Backups';
-- What Agent writes in front of the exit status, in its language.
DECLARE @before_status nvarchar(100) = N'Process Exit Code ';
DECLARE @job sysname = N'mdfsck: nightly check';

DECLARE @check nvarchar(max) = N'"' + @mdfsck + N'" check --no-infomsgs --maxdop 2 --memory 2GB --io-limit 200MB'
    + N' --within 14d --history "' + @folder + N'\checks.db" --output "' + @folder + N'\nightly.txt" "' + @backups + N'"';
DECLARE @log nvarchar(200) = @folder + N'\nightly.log';

-- Step 2. Step 1 is in the history before step 2 begins; its message ends with the exit status.
DECLARE @report nvarchar(max) = N'
DECLARE @message nvarchar(4000) = (SELECT TOP (1) h.message
    FROM msdb.dbo.sysjobhistory AS h JOIN msdb.dbo.sysjobs AS j ON j.job_id = h.job_id
    WHERE j.name = N''{job}'' AND h.step_id = 1
    ORDER BY h.instance_id DESC);
DECLARE @end nvarchar(80) = RIGHT(RTRIM(@message), 80);
IF @message LIKE N''%{before_status}16.%''
    RAISERROR(N''mdfsck: not everything was verified, or not in time. See %s. %s'', 16, 1, N''{folder}\nightly.txt'', @end) WITH LOG;
ELSE
    -- Also if the status is not known: that is as urgent as it can be.
    RAISERROR(N''mdfsck: CORRUPTION, or it could not look. See %s, and nightly.txt if it is as new. %s'', 19, 1, N''{folder}\nightly.log'', @end) WITH LOG;
';
SET @report = REPLACE(@report, N'{job}', REPLACE(@job, N'''', N''''''));
SET @report = REPLACE(@report, N'{before_status}', REPLACE(@before_status, N'''', N''''''));
SET @report = REPLACE(@report, N'{folder}', REPLACE(@folder, N'''', N''''''));

BEGIN TRANSACTION;
IF NOT EXISTS (SELECT * FROM dbo.sysjobs WHERE name = @job)
BEGIN
    EXEC dbo.sp_add_job @job_name = @job, @description = N'Checks the backups with mdfsck, as DBCC CHECKDB would.';
    EXEC dbo.sp_add_jobschedule @job_name = @job, @name = N'mdfsck: every night at 22:00',
        @freq_type = 4, @freq_interval = 1, @freq_subday_type = 1, @active_start_time = 220000;
    EXEC dbo.sp_add_jobserver @job_name = @job, @server_name = N'(local)';
END
ELSE
    -- 0: all steps.
    EXEC dbo.sp_delete_jobstep @job_name = @job, @step_id = 0;

-- Actions: 1 quit with success, 2 quit with failure, 3 go to the next step. @flags 0: the log is written anew each time.
EXEC dbo.sp_add_jobstep @job_name = @job, @step_id = 1, @step_name = N'check', @subsystem = N'CmdExec', @command = @check,
    @cmdexec_success_code = 0, @on_success_action = 1, @on_fail_action = 3, @output_file_name = @log, @flags = 0;
EXEC dbo.sp_add_jobstep @job_name = @job, @step_id = 2, @step_name = N'report what went wrong', @subsystem = N'TSQL',
    @command = @report, @database_name = N'msdb', @on_success_action = 2, @on_fail_action = 2;
EXEC dbo.sp_update_job @job_name = @job, @start_step_id = 1;
COMMIT;
