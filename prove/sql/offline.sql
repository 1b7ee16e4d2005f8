-- Takes a database of this kit offline, so that its files can be exchanged.
-- Sent behind own.sql, which stops at every other database and declares the variables.
SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET OFFLINE WITH ROLLBACK IMMEDIATE';
EXEC (@statement);
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
