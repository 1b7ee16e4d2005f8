-- Stops unless the database is one of this kit: it has the kit's prefix, and all its files are in the kit's folder.
-- @database: its name   @folder: the kit's folder, as the server names it
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max), @state nvarchar(60), @outside nvarchar(max), @windows bit;
IF DB_ID(@database) IS NULL
BEGIN
    PRINT N'prove:state=NONE';
    RETURN;
END;
-- The server may spell a path in its own way: with other or doubled separators and, on Windows, with other capitals.
SET @windows = CASE WHEN @folder LIKE N'[A-Za-z]:%' OR LEFT(@folder, 2) = N'\\' THEN 1 ELSE 0 END;
SET @folder = REPLACE(REPLACE(REPLACE(@folder, N'\', N'/'), N'//', N'/'), N'//', N'/');
IF @windows = 1 SET @folder = UPPER(@folder COLLATE Latin1_General_BIN2);
SELECT @outside = place
FROM (SELECT REPLACE(REPLACE(REPLACE(physical_name, N'\', N'/'), N'//', N'/'), N'//', N'/')
        COLLATE Latin1_General_BIN2 AS place
    FROM sys.master_files WHERE database_id = DB_ID(@database)) AS files
WHERE LEFT(CASE WHEN @windows = 1 THEN UPPER(place) ELSE place END, LEN(@folder)) <> @folder;
IF LEFT(@database, 13) <> N'mdfsck_prove_'
    OR NOT EXISTS (SELECT * FROM sys.master_files WHERE database_id = DB_ID(@database))
    OR @outside IS NOT NULL
BEGIN
    PRINT N'prove:outside=' + ISNULL(@outside, N'');
    PRINT N'prove:state=FOREIGN';
    RETURN;
END;
