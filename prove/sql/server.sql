-- Asks what the server is. Changes nothing.
-- @run: the first part of the names that this run gives to its databases
SET NOCOUNT ON;
SET LANGUAGE us_english;
DECLARE @taken int;
DECLARE @name nvarchar(128), @version nvarchar(128), @edition nvarchar(128), @collation nvarchar(128);
SELECT @taken = COUNT(*) FROM sys.databases WHERE LEFT(name, LEN(@run)) = @run;
SELECT @name = CONVERT(nvarchar(128), SERVERPROPERTY(N'ServerName')),
       @version = CONVERT(nvarchar(128), SERVERPROPERTY(N'ProductVersion')),
       @edition = CONVERT(nvarchar(128), SERVERPROPERTY(N'Edition')),
       @collation = CONVERT(nvarchar(128), SERVERPROPERTY(N'Collation'));
PRINT N'prove:name=' + ISNULL(@name, N'');
PRINT N'prove:version=' + @version;
PRINT N'prove:edition=' + @edition;
PRINT N'prove:collation=' + @collation;
PRINT N'prove:taken=' + CONVERT(nvarchar(11), @taken);
PRINT N'prove:sysadmin=' + CONVERT(nvarchar(11), ISNULL(IS_SRVROLEMEMBER(N'sysadmin'), 0));
