-- Brings a database of this kit online.
-- @database: its name   @folder: the kit's folder, as the server names it
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max), @state nvarchar(60);
IF DB_ID(@database) IS NULL
BEGIN
    PRINT N'prove:state=NONE';
    RETURN;
END;
-- A database of this kit has the kit's prefix, and all its files are in the kit's folder.
IF LEFT(@database, 13) <> N'mdfsck_prove_'
    OR NOT EXISTS (SELECT * FROM sys.master_files WHERE database_id = DB_ID(@database))
    OR EXISTS (SELECT * FROM sys.master_files
        WHERE database_id = DB_ID(@database) AND LEFT(physical_name, LEN(@folder)) <> @folder)
BEGIN
    PRINT N'prove:state=FOREIGN';
    RETURN;
END;
SET @statement = N'ALTER DATABASE ' + QUOTENAME(@database) + N' SET ONLINE';
EXEC (@statement);
SELECT @state = state_desc FROM sys.databases WHERE name = @database;
PRINT N'prove:state=' + @state;
