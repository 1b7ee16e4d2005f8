-- Makes a database of this kit read-only, so that its pages do not change any more, and detaches it.
-- Sent behind own.sql, which stops at every other database and declares the variables.
SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET READ_ONLY WITH ROLLBACK IMMEDIATE';
EXEC (@statement);
EXEC master.dbo.sp_detach_db @dbname = @database, @skipchecks = N'true';
SET @state = N'NONE';
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
