-- Lists the files in a backup. Changes nothing.
-- @disks: DISK = N'...', for each stripe   @position: the number of the backup set in the media set
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @statement nvarchar(max);
SET @statement = N'RESTORE FILELISTONLY FROM ' + @disks + N' WITH FILE = ' + @position;
EXEC (@statement);
