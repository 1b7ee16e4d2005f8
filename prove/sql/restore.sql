-- Restores a backup under a new name. Without REPLACE, RESTORE overwrites neither a database nor a file of one.
-- @database: the new name   @disks, @position: the backup   @moves: MOVE N'...' TO N'...', for each file
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max), @state nvarchar(60);
IF DB_ID(@database) IS NOT NULL
BEGIN
    PRINT N'prove:state=TAKEN';
    RETURN;
END;
SET @statement = N'RESTORE DATABASE ' + QUOTENAME(@database) + N' FROM ' + @disks
    + N' WITH FILE = ' + @position + N', ' + @moves + N', RECOVERY';
EXEC (@statement);
SET @state = N'NONE';
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
