-- Attaches copies of files under a new name.
-- @database: the new name   @files: (FILENAME = N'...'), for each file
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max), @state nvarchar(60);
IF DB_ID(@database) IS NOT NULL
BEGIN
    PRINT N'prove:state=TAKEN';
    RETURN;
END;
SET @statement = N'CREATE DATABASE ' + QUOTENAME(@database) + N' ON ' + @files + N' FOR ATTACH';
EXEC (@statement);
SET @state = N'NONE';
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
