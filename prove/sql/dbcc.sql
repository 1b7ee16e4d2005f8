-- Runs DBCC CHECKDB, CHECKALLOC or CHECKCATALOG on a database of this kit, without repair.
-- @database: its name   @command: CHECKDB, ...   @options: NO_INFOMSGS, ...
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max);
SET @statement = N'DBCC ' + @command + N' (' + QUOTENAME(@database) + N')'
    + CASE WHEN @options = N'' THEN N'' ELSE N' WITH ' + @options END;
EXEC (@statement);
PRINT N'prove:done';
