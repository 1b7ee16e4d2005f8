-- Sets a database of this kit that the server cannot bring online to EMERGENCY, in which CHECKDB can read it.
-- Sent behind own.sql, which stops at every other database and declares the variables.
SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET EMERGENCY';
EXEC (@statement);
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
