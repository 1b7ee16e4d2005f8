-- Drops a database of this kit.
-- Sent behind own.sql, which stops at every other database and declares the variables.
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
IF @state = N'ONLINE'
BEGIN
    SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET SINGLE_USER WITH ROLLBACK IMMEDIATE';
    EXEC (@statement);
END;
SET @statement = N'DROP DATABASE ' + QUOTENAME(@database);
EXEC (@statement);
SET @state = N'NONE';
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
