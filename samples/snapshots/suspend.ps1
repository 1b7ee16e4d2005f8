# Suspends the writes of a database of SQL Server 2022 or later, has another program make the snapshot, and resumes them:
#   mdfsck check --snapshot-with pwsh --snapshot-argument=-NoProfile --snapshot-argument=-File `
#       --snapshot-argument=suspend.ps1 --snapshot-argument=-Database --snapshot-argument=sales `
#       --snapshot-argument=-MetadataFile --snapshot-argument=/backups/sales.bkm `
#       --snapshot-argument=-Program --snapshot-argument=/opt/mdfsck/reflink.sh PATH...
# Use it where the storage cannot make a snapshot of all files at one moment: data and log on several volumes, or copies one after
# another. The program must be quick, since all writes of the database wait for it.
#
# The metadata file is that of BACKUP ... WITH METADATA_ONLY, which resumes the writes: SQL Server can restore the database from a
# snapshot with it (RESTORE ... WITH METADATA_ONLY). For a check it is not needed. With MODE = COPY_ONLY, the base of later
# differential backups stays as it is. The user needs the right to back up and to alter the database.
param(
    [Parameter(Mandatory = $true)][string]$Database,
    # FORMAT overwrites this file, which must be no backup.
    [Parameter(Mandatory = $true)][ValidatePattern('\.bkm$')][string]$MetadataFile,
    # The program that makes the snapshot, with the same calls as --snapshot-with.
    [Parameter(Mandatory = $true)][string]$Program,
    [string]$Server = 'localhost',
    [Parameter(Mandatory = $true, Position = 0)][ValidateSet('create', 'remove')][string]$Verb,
    [Parameter(Position = 1, ValueFromRemainingArguments = $true)][string[]]$Lines
)
$ErrorActionPreference = 'Stop'
# mdfsck reads UTF-8.
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
if ($Verb -eq 'remove') {
    & $Program remove @Lines
    exit $LASTEXITCODE
}

# Suspension and backup must be in one session. If this process is ended, its session ends, and SQL Server resumes the writes.
$settings = New-Object System.Data.SqlClient.SqlConnectionStringBuilder
$settings['Data Source'] = $Server
$settings['Integrated Security'] = $true
$settings['Pooling'] = $false
$connection = New-Object System.Data.SqlClient.SqlConnection $settings.ConnectionString

function Invoke-Statement([string]$Text) {
    $command = $connection.CreateCommand()
    $command.CommandText = $Text
    $command.CommandTimeout = 0
    [void]$command.ExecuteNonQuery()
}

$name = '[' + $Database.Replace(']', ']]') + ']'
$file = "N'" + $MetadataFile.Replace("'", "''") + "'"
try {
    $connection.Open()
    Invoke-Statement "ALTER DATABASE $name SET SUSPEND_FOR_SNAPSHOT_BACKUP = ON (MODE = COPY_ONLY);"
    try {
        $global:LASTEXITCODE = 0
        & $Program create @Lines
        if ($LASTEXITCODE -ne 0) { throw "$Program ended with exit status $LASTEXITCODE" }
        Invoke-Statement "BACKUP DATABASE $name TO DISK = $file WITH METADATA_ONLY, FORMAT;"
    } catch {
        Invoke-Statement "ALTER DATABASE $name SET SUSPEND_FOR_SNAPSHOT_BACKUP = OFF;"
        throw
    }
} catch {
    [Console]::Error.WriteLine("suspend.ps1: $_")
    exit 1
} finally {
    $connection.Dispose()
}
exit 0
