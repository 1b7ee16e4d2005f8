-- Brings a database of this kit online.
-- Sent behind own.sql, which stops at every other database and declares the variables.
SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET ONLINE';
EXEC (@statement);
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
