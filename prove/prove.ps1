#Requires -Version 7.3
<#
.SYNOPSIS
Compares mdfsck with DBCC CHECKDB on your own server: see docs/guides/prove.md.
.DESCRIPTION
Restores a backup under a new name (or attaches copies of data files), damages copies of its files, lets SQL Server's DBCC CHECKDB and
mdfsck check each copy, and compares what they print. The variables MDFSCK and SQLCMD name the programs if they are not on the PATH.
Exit status: 0 no difference, 1 differences, 4 the kit could not run, 8 wrong usage, 16 some copies were not compared (17: both),
130 interrupted. 4 is added (5, 20, 21) if a database of the kit is still on the server.
.PARAMETER Folder
New or empty folder for files and results, which the server can write to.
.PARAMETER ServerFolder
The same folder as the server names it, if it runs in a container or on another machine.
.PARAMETER Backup
Full backup, as the server names it; a list for the stripes of one backup.
.PARAMETER Position
Number of the backup in a file with several.
.PARAMETER Data
Data and log files of a database that is shut down. The kit copies the files.
.PARAMETER Copies
Number of damaged copies.
.PARAMETER Seed
Seed of the first copy.
.PARAMETER KeepAll
Keep the files of all copies, not only of those with a difference.
.PARAMETER Yes
Begin without a question.
.PARAMETER Clean
Only remove the databases that a run in the folder left behind.
.PARAMETER SqlcmdOption
Options of sqlcmd, such as '-S', 'tcp:localhost,1433', '-U', 'sa', '-C'. The variable SQLCMDPASSWORD holds a password.
.EXAMPLE
./prove.ps1 -Folder D:\prove -Backup D:\Backups\sales.bak -SqlcmdOption '-S', '.', '-E', '-C'
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory)] [string] $Folder,
    [string] $ServerFolder,
    [string[]] $Backup = @(),
    [int] $Position = 1,
    [string[]] $Data = @(),
    [int] $Copies = 60,
    [uint64] $Seed = 1,
    [switch] $KeepAll,
    [switch] $Yes,
    [switch] $Clean,
    [string[]] $SqlcmdOption = @()
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $false
$PSNativeCommandArgumentPassing = if ($IsWindows) { 'Windows' } else { 'Standard' }
[Console]::OutputEncoding = [Text.UTF8Encoding]::new($false)
$mdfsck = if ($env:MDFSCK) { $env:MDFSCK } else { 'mdfsck' }
$sqlcmd = if ($env:SQLCMD) { $env:SQLCMD } else { 'sqlcmd' }
$prefix = 'mdfsck_prove_' # sql/*.sql refuse every database without it

# Ends the run with a status and one line.
function Stop-Run([int] $Code, [string] $Text) {
    $script:status = $Code
    throw [OperationCanceledException]::new($Text)
}
function Format-Sql([string] $Text) { $Text.Replace("'", "''") }
function Test-Here([string] $Program) { $null -ne (Get-Command -Name $Program -CommandType Application -ErrorAction Ignore) }
function Add-Line([string] $Path, [string] $Text) { [IO.File]::AppendAllText($Path, "$Text`n") }

# ---- the server -------------------------------------------------------------------------------------------------------

$run = [pscustomobject] @{ Steps = 0; Reply = ''; Answered = 0; Size = 0L; Names = @(); Stopped = $false; Stuck = '' }
# Sends sql/NAME.sql with variables. What was sent and what came back stays in the folder sql.
function Invoke-Step([string] $Name, [Collections.IDictionary] $Variables) {
    $run.Steps++
    $sent = Join-Path $Folder 'sql' ('{0:d4}-{1}.sql' -f $run.Steps, $Name)
    $run.Reply = $sent -replace '\.sql$', '.txt'
    # A second run with -Clean uses the same names.
    $run.Reply, "$($run.Reply).error" | Where-Object { Test-Path -LiteralPath $_ } | ForEach-Object { Remove-Item -LiteralPath $_ }
    $text = ''
    foreach ($variable in $Variables.Keys) {
        $type = if ($variable -eq 'database') { 'sysname' } else { 'nvarchar(max)' }
        $text += "DECLARE @$variable $type;`nSET @$variable = N'$(Format-Sql $Variables[$variable])';`n"
    }
    # own.sql comes before each statement that could change a database.
    $parts = if ($Name -in 'server', 'filelist', 'restore', 'attach', 'dbcc') { $Name } else { 'own', $Name }
    foreach ($part in $parts) {
        $text += [IO.File]::ReadAllText((Join-Path $PSScriptRoot 'sql' "$part.sql")).Replace("`r", '')
    }
    [IO.File]::WriteAllText($sent, $text, [Text.UTF8Encoding]::new($false))
    # -x: a name with $( in it stays as it is. -I: without it, CHECKDB cannot evaluate indexed views. Files are UTF-8.
    $own = '-d', 'master', '-b', '-x', '-I', '-l', '30', '-W', '-w', '65535', '-s', "`t", '-i', $sent, '-o', $run.Reply
    if ($IsWindows) { $own += '-f', '65001' }
    $errors = & $sqlcmd @SqlcmdOption @own 2>&1
    $run.Answered = $LASTEXITCODE
    if ($errors) { [IO.File]::WriteAllLines("$($run.Reply).error", [string[]] @($errors | ForEach-Object { "$_" })) }
    if (-not (Test-Path -LiteralPath $run.Reply)) { [IO.File]::WriteAllText($run.Reply, '') }
}
function Get-Told([string] $Name) { # a line of the reply
    foreach ($line in [IO.File]::ReadLines($run.Reply)) {
        # Without what would steer a terminal.
        if ($line.StartsWith("prove:$Name=")) { return ($line.Substring("prove:$Name=".Length) -replace '[\p{Cc}\p{Cf}]', '').Trim() }
    }
}
# How the last statement ended (outcome), or why it failed (why).
function Read-Reply([string] $What) {
    $replies = @($run.Reply, "$($run.Reply).error") | Where-Object { Test-Path -LiteralPath $_ }
    foreach ($line in & $mdfsck prove reply --status $run.Answered @replies) {
        if ($line.StartsWith("$What`t")) { return $line.Substring($What.Length + 1) }
    }
}
function Get-Why { "$(Read-Reply why) ($($run.Reply))" }

# ---- databases of this run --------------------------------------------------------------------------------------------

# A name is noted before the server hears of it, so that Ctrl+C at any time leaves none behind.
function Add-Made([string] $Name) { Add-Line $made $Name }
function Remove-Made([string] $Name) {
    # If the disk is full, the list stays as it is.
    $new = Join-Path $Folder made.new
    try {
        [IO.File]::WriteAllLines($new, [string[]] @([IO.File]::ReadAllLines($made) | Where-Object { $_ -cne $Name }))
        [IO.File]::Move($new, $made, $true)
    } catch [IO.IOException] { [Console]::Error.WriteLine("prove: $Name stays in ${made}: $($_.Exception.Message)") }
}
function Remove-OwnDatabase([string] $Name) { # whether it is gone
    if (-not $Name.StartsWith($prefix, [StringComparison]::Ordinal)) {
        Write-Host "$Name in made.txt is no database of the kit, and was not touched"
        Remove-Made $Name
        return $true
    }
    # The server may still be busy with the statement before, so one answer is not enough.
    foreach ($try in 1..5) {
        if ($try -gt 1) { Start-Sleep 1 }
        Invoke-Step drop ([ordered] @{ database = $Name; folder = $serverFiles })
        if ((Get-Told state) -ceq 'NONE') {
            Remove-Made $Name
            return $true
        }
        if ((Get-Told state) -ceq 'FOREIGN') {
            [Console]::Error.WriteLine("prove: the database $Name was not touched: its file $(Get-Told outside) is not in $serverFiles; " +
                'if this is the same folder, give its path on the server with -ServerFolder')
            return $false
        }
    }
    [Console]::Error.WriteLine("prove: the database $Name is still on the server: $(Get-Why)")
    $false
}
# Returns whether nothing is left.
function Clear-Run {
    if (-not $made -or -not (Test-Path -LiteralPath $made)) { return $true }
    $isClean = $true
    $names = @([IO.File]::ReadAllLines($made))
    # The server never has these files, and if the disk is full, the statements need room.
    try { Remove-Folder (Get-Files damaged) } catch { [Console]::Error.WriteLine("prove: $($_.Exception.Message)") }
    if ($names) { Write-Host 'removing the databases of this run' }
    foreach ($name in $names) {
        # What fails for one database is no reason to leave the others.
        try { $isGone = Remove-OwnDatabase $name } catch {
            [Console]::Error.WriteLine("prove: the database $name may still be on the server: $($_.Exception.Message)")
            $isGone = $false
        }
        if (-not $isGone) { $isClean = $false }
    }
    if (-not $isClean) {
        [Console]::Error.WriteLine("prove: run this script again with -Clean -Folder $Folder")
    } else {
        try { Remove-Folder (Join-Path $Folder files) } catch {
            [Console]::Error.WriteLine("prove: the files of the run cannot be removed: $($_.Exception.Message)")
        }
    }
    $isClean
}

# ---- files ------------------------------------------------------------------------------------------------------------

function Get-Files([string] $Name) { Join-Path $Folder files $Name }
function Remove-Folder([string] $Path) {
    if (Test-Path -LiteralPath $Path) { Remove-Item -LiteralPath $Path -Recurse -Force }
}
function New-EmptyFolder([string] $Path) {
    Remove-Folder $Path
    $null = [IO.Directory]::CreateDirectory($Path)
    if (-not $IsWindows) { chmod g+rwx -- $Path }
}
function Get-Free { # bytes, or nothing if that is unknown
    try { [IO.DriveInfo]::new($Folder).AvailableFreeSpace } catch { $null }
}
function Format-Size([long] $Bytes) { '{0} MB' -f [Math]::Ceiling($Bytes / 1048576) }
# All files of the database, from one folder into another. What the second has stays.
function Copy-Missing([string] $From, [string] $To) {
    foreach ($name in $run.Names) {
        $target = Join-Path $To $name
        if (-not (Test-Path -LiteralPath $target)) { [IO.File]::Copy((Join-Path $From $name), $target) }
        if (-not $IsWindows) { chmod ug+rw -- $target }
    }
}
function Stop-Taken([string] $Name) {
    Remove-Made $Name
    Stop-Run 4 "a database $Name is on the server already, and was not touched; run the kit again"
}
function Mount-Files([string] $Name, [string] $Of) {
    $clause = @($run.Names | ForEach-Object { "(FILENAME = N'$(Format-Sql "$serverFiles$Of$separator$_")')" }) -join ', '
    Add-Made $Name
    Invoke-Step attach ([ordered] @{ database = $Name; files = $clause })
    if ((Get-Told state) -eq 'TAKEN') { Stop-Taken $Name }
}

# ---- one copy ---------------------------------------------------------------------------------------------------------

# Brings the damaged files onto the server. Sets State, which is ONLINE or EMERGENCY if CHECKDB can run, and Way.
function Mount-Damaged([pscustomobject] $Case) {
    $damaged, $server = (Get-Files damaged), (Get-Files server)
    $on = [ordered] @{ database = $Case.Database; folder = $serverFiles }
    Copy-Missing $damaged $server
    Mount-Files $Case.Database server
    $Case.State, $Case.Way = (Get-Told state), 'attached'
    if (-not $Case.State -or $Case.State -eq 'NONE') {
        $Case.Way = "attach refused ($((Read-Reply why).Split(':')[0])), files exchanged"
        # The server refuses the files: it attaches sound ones, and gets the damaged ones while they are offline.
        if (-not (Remove-OwnDatabase $Case.Database)) { throw [IO.IOException]::new("the database $($Case.Database) is still on the server") }
        New-EmptyFolder $server
        Copy-Missing (Get-Files base) $server
        Mount-Files $Case.Database server
        if ((Get-Told state) -ne 'ONLINE') { return }
        Invoke-Step offline $on
        $Case.State = Get-Told state
        if ($Case.State -ne 'OFFLINE') { return }
        foreach ($name in $run.Names) {
            # Into the same file, whose owner and rights are right already.
            $from = [IO.File]::OpenRead((Join-Path $damaged $name))
            $to = [IO.File]::Open((Join-Path $server $name), 'Truncate', 'Write')
            try { $from.CopyTo($to) } finally { $from.Dispose(); $to.Dispose() }
        }
        Invoke-Step online $on
        $Case.State = Get-Told state
    }
    if ($Case.State -ne 'ONLINE') {
        Invoke-Step emergency $on
        $Case.State = Get-Told state
        $Case.Way += ', EMERGENCY'
    }
}
function Save-Reply([string] $Path) {
    # Without the lines that the statements of the kit print.
    $lines = [IO.File]::ReadLines($run.Reply) | Where-Object { $_ -notmatch '^(prove:|Changed language setting)' }
    [IO.File]::WriteAllLines($Path, [string[]] @($lines))
}
# Writes the output into a file of the case. Returns nothing if there is a result to compare, or else the reason why not.
function Invoke-Dbcc([pscustomobject] $Case, [string] $Command, [string] $Options) {
    $variables = [ordered] @{ database = $Case.Database; command = $Command; options = $Options }
    Invoke-Step dbcc $variables
    $outcome = Read-Reply outcome
    # CHECKCATALOG has no TABLOCK.
    if ($outcome -eq 'no-snapshot' -and $Command -ne 'CHECKCATALOG') {
        if (-not $Case.Way.EndsWith('TABLOCK')) { $Case.Way += ', no snapshot: WITH TABLOCK' }
        $variables.options = (@($Options) + 'TABLOCK' | Where-Object { $_ }) -join ', '
        Invoke-Step dbcc $variables
        $outcome = Read-Reply outcome
    }
    Save-Reply (Join-Path $Case.Folder "$($Command.ToLowerInvariant()).txt")
    switch ($outcome) {
        'complete' { }
        'cut-off' { "$Command was cut off: $(Get-Why)" }
        default { "$Command gave no result: $(Get-Why)" }
    }
}
# What only the sound copy gets: CHECKALLOC and CHECKCATALOG of both. A command without a result leaves its reason.
function Invoke-Listings([pscustomobject] $Case) {
    foreach ($scope in 'alloc', 'catalog') {
        $reason = Invoke-Dbcc $Case "CHECK$($scope.ToUpperInvariant())" ''
        $said = @(& $mdfsck check "--$scope" --output (Join-Path $Case.Folder "mdfsck-check$scope.txt") (Get-Files damaged) 2>&1)
        if ($LASTEXITCODE -band 12) { $reason = "mdfsck check --$scope failed: $($said | Select-Object -Last 1)" }
        if ($reason) { [IO.File]::WriteAllText((Join-Path $Case.Folder "check$scope.reason"), "$reason`n") }
    }
}
function Write-Verdict([pscustomobject] $Case, [string] $Verdict, [string] $Text) {
    # A tab or a line break would begin another cell.
    $Text = $Text -replace "[`t`r`n]", ' '
    Add-Line (Join-Path $Folder cases.tsv) (($Case.Number, $Case.Kind, $Case.Seed, $Verdict, $Case.Way, $Text) -join "`t")
    $how = if ($Case.Way) { " ($($Case.Way))" }
    $why = if ($Text) { ": $Text" }
    Write-Host "$($Case.Number) $($Case.Kind), seed $($Case.Seed): $Verdict$how$why"
}
# The damaged files, for whoever looks into a difference.
function Save-Files([pscustomobject] $Case) {
    $zip = Join-Path $Case.Folder files.zip
    if (Test-Path -LiteralPath $zip) { return }
    try { [IO.Compression.ZipFile]::CreateFromDirectory((Get-Files damaged), $zip) } catch [IO.IOException] {
        # A part of them would mislead.
        if (Test-Path -LiteralPath $zip) { Remove-Item -LiteralPath $zip }
    }
}
function Invoke-Copy([string] $Number, [string] $Kind, [string] $CopySeed) {
    $case = [pscustomobject] @{
        Number = $Number; Kind = $Kind; Seed = $CopySeed; Way = ''; State = ''; Database = "$runName$Number"
        Folder = Join-Path $Folder cases "$Number-$Kind"
    }
    $null = [IO.Directory]::CreateDirectory($case.Folder)
    $free = Get-Free
    if ($run.Stuck) { return Stop-Copies $case $run.Stuck }
    if ($null -ne $free -and $free -lt 2 * $run.Size) {
        return Stop-Copies $case "the disk of $Folder has too little space left"
    }
    # The report has what was compared until here.
    try { Compare-Copy $case } catch [IO.IOException], [UnauthorizedAccessException] {
        return Stop-Copies $case $_.Exception.Message
    }
    # The next copy needs the place of these files. A name that stays in the list gets another try at the end.
    try {
        $isGone = $case.Database -notin [IO.File]::ReadAllLines($made) -or (Remove-OwnDatabase $case.Database)
    } catch [IO.IOException] { $isGone = $false }
    if (-not $isGone) { $run.Stuck = "the database $($case.Database) is still on the server" }
}
# Ends the copies, but not the run.
function Stop-Copies([pscustomobject] $Case, [string] $Text) {
    $run.Stopped = $true
    Write-Verdict $Case stopped $Text
}
function Compare-Copy([pscustomobject] $Case) {
    $damaged = Get-Files damaged
    New-EmptyFolder $damaged
    New-EmptyFolder (Get-Files server)
    if ($Case.Kind -ne 'sound') {
        $said = & $mdfsck lab damage (Get-Files base) --kind $Case.Kind --seed $Case.Seed -o $damaged 2>&1
        $status = $LASTEXITCODE
        [IO.File]::WriteAllLines((Join-Path $Case.Folder damage.txt), [string[]] @($said | ForEach-Object { "$_" }))
        if ($status -ne 0) { return Write-Verdict $Case not-offered "$(@($said)[-1])" }
    }
    Copy-Missing (Get-Files base) $damaged
    Mount-Damaged $Case
    $isOpen = $Case.State -in 'ONLINE', 'EMERGENCY'
    $options = 'TABLERESULTS, ALL_ERRORMSGS'
    if ($Case.Kind -ne 'sound') { $options += ', NO_INFOMSGS' }
    $reason = if ($isOpen) { Invoke-Dbcc $Case CHECKDB $options } else { "the server opens these files in no way: $(Get-Why)" }
    $errors = @(& $mdfsck check --tableresults --output (Join-Path $Case.Folder mdfsck.csv) $damaged 2>&1)
    $status = $LASTEXITCODE
    if ($Case.Kind -eq 'sound' -and -not $reason) { Invoke-Listings $Case }
    [IO.File]::WriteAllLines((Join-Path $Case.Folder mdfsck.err), [string[]] @($errors | ForEach-Object { "$_" }))
    if ($reason) {
        Save-Files $Case
        Write-Verdict $Case refused "$reason; mdfsck: exit status $status"
    } else {
        Compare-Result $Case
    }
    if ($KeepAll) { Save-Files $Case }
}
function Compare-Result([pscustomobject] $Case) {
    $result, $damaged = (Join-Path $Case.Folder checkdb.txt), (Get-Files damaged)
    $json = @(& $mdfsck compare-dbcc --json $result $damaged 2>(Join-Path $Case.Folder compare.err))
    $status = $LASTEXITCODE
    [IO.File]::WriteAllLines((Join-Path $Case.Folder compare.json), [string[]] $json)
    if ($status -band 12) {
        Save-Files $Case
        Write-Verdict $Case refused "mdfsck compare-dbcc ended with status $status; see $($Case.Folder)"
    } elseif ($status -band 1) {
        Save-Files $Case
        $text = @(& $mdfsck compare-dbcc $result $damaged 2>$null)
        [IO.File]::WriteAllLines((Join-Path $Case.Folder compare.txt), [string[]] $text)
        Write-Verdict $Case differ "see $($Case.Folder)"
    } elseif ("$($json | Select-Object -First 1)" -cmatch '"hidden":0,.*"whole":true') {
        # All messages of both were compared.
        Write-Verdict $Case agree ''
    } else {
        Save-Files $Case
        Write-Verdict $Case refused 'the results are not whole, so that they show no agreement'
    }
}

# A line of server.txt: name, folder.
function Get-Noted([string] $Name) {
    if (-not (Test-Path -LiteralPath $serverFile)) { return '' }
    foreach ($line in [IO.File]::ReadLines($serverFile)) {
        if ($line.StartsWith("$Name`t")) { return $line.Substring($Name.Length + 1) }
    }
}
# On another server, none of the databases exists, and the list would be lost.
function Confirm-Server {
    if (-not [IO.File]::ReadAllText($list)) { return }
    Invoke-Step server ([ordered] @{ run = $prefix })
    if ($run.Answered -ne 0) { Stop-Run 4 "the server does not answer: $(Get-Why)" }
    $name, $here = (Get-Noted name), (Get-Told name)
    if ($name -and $name -cne $here) {
        Stop-Run 4 ("nothing was removed: the run in $Folder was on the server $name, but this is $here; " +
            "if it is the same server under a new name, delete $serverFile")
    }
}

# ---- the run ----------------------------------------------------------------------------------------------------------

# The database's files and size, and for a backup the MOVE clauses.
function Read-Database([string] $Disks) {
    if ($Disks) {
        Invoke-Step filelist ([ordered] @{ disks = $Disks; position = "$Position" })
        if ($run.Answered -ne 0) { Stop-Run 4 "the backup cannot be read: $(Get-Why)" }
        $list = @(& $mdfsck prove files $run.Reply --to "${serverFiles}base$separator" 2>&1 | ForEach-Object { "$_" })
        if ($LASTEXITCODE -ne 0) { Stop-Run 4 ($list[-1] -replace '^mdfsck: ', '') }
        $of = { param($key) $list | Where-Object { $_.StartsWith("$key`t") } | ForEach-Object { $_.Substring($key.Length + 1) } }
        $run.Size, $run.Names = [long] (& $of size), @(& $of file)
        return & $of moves
    }
    $files = @($Data | ForEach-Object { Get-Item -LiteralPath $_ })
    $run.Size, $run.Names = [long] ($files | Measure-Object -Property Length -Sum).Sum, @($files.Name)
    if (@($run.Names | Sort-Object -Unique).Count -ne $files.Count) { Stop-Run 8 'two files have the same name; rename one' }
}
function Confirm-Begin {
    $free = Get-Free
    Write-Host "this will, in ${Folder}:"
    $how = if ($Backup) { 'restore the backup' } else { 'copy the files, and attach the copy' }
    Write-Host "  $how as ${runName}base"
    Write-Host '  make it read-only, and detach it'
    Write-Host "  damage $Copies copies of it, seeds from $Seed; attach each as ${runName}NNN, run DBCC CHECKDB and mdfsck, drop it"
    Write-Host '  the sound copy also gets DBCC CHECKALLOC and CHECKCATALOG'
    Write-Host '  other databases are not touched; the databases made are listed in made.txt, and are dropped at the end or after Ctrl+C'
    $there = if ($null -eq $free) { 'unknown' } else { Format-Size $free }
    Write-Host "space: $(Format-Size (3 * $run.Size)) in use at a time, and up to $(Format-Size $run.Size) for each copy with a difference, compressed; free: $there"
    if ($null -ne $free -and $free -lt 3 * $run.Size) {
        Stop-Run 4 "the disk of $Folder has too little space; name another folder with -Folder"
    }
    if ($Yes) { return }
    $answer = try { Read-Host 'Begin? [y/N]' } catch { '' }
    if ($answer -notin 'y', 'yes') { Stop-Run 8 'nothing was done; answer y, or give -Yes' }
}
function New-Base([string] $Disks, [string] $Moves) {
    $base = "${runName}base"
    New-EmptyFolder (Get-Files base)
    if ($Disks) {
        Add-Made $base
        Invoke-Step restore ([ordered] @{ database = $base; disks = $Disks; position = "$Position"; moves = $Moves })
        if ((Get-Told state) -eq 'TAKEN') { Stop-Taken $base }
        if ((Get-Told state) -ne 'ONLINE') { Stop-Run 4 "the backup cannot be restored: $(Get-Why)" }
    } else {
        foreach ($file in $Data) { Copy-Item -LiteralPath $file -Destination (Get-Files base) }
        if (-not $IsWindows) { $run.Names | ForEach-Object { chmod ug+rw -- (Join-Path (Get-Files base) $_) } }
        Mount-Files $base base
        if ((Get-Told state) -ne 'ONLINE') { Stop-Run 4 "the files cannot be attached: $(Get-Why)" }
    }
    Invoke-Step detach ([ordered] @{ database = $base; folder = $serverFiles })
    if ((Get-Told state) -eq 'FOREIGN') { Stop-Run 4 "the server does not have the files of the database in $serverFiles" }
    if ((Get-Told state) -ne 'NONE') { Stop-Run 4 "the database cannot be detached: $(Get-Why)" }
    Remove-Made $base
    foreach ($name in $run.Names) {
        try { [IO.File]::OpenRead((Join-Path (Get-Files base) $name)).Dispose() } catch {
            Stop-Run 4 "$(Join-Path (Get-Files base) $name) cannot be read; run the kit as a user who can read the server's files, or set -ServerFolder"
        }
    }
}
function Invoke-Run {
    Invoke-Step server ([ordered] @{ run = $runName })
    $version = Get-Told version
    if ($run.Answered -ne 0 -or -not $version) { Stop-Run 4 "the server does not answer: $(Get-Why)" }
    if ((Get-Told taken) -ne '0') { Stop-Run 4 "databases on this server have names that begin with $runName; run the kit again" }
    if ((Get-Told sysadmin) -ne '1') { Stop-Run 4 'the login is not in the role sysadmin, which CHECKDB and EMERGENCY need' }
    [IO.File]::WriteAllText($serverFile, "name`t$(Get-Told name)`nfolder`t$ServerFolder`n")
    Write-Host "server: SQL Server $version, $(Get-Told edition), collation $(Get-Told collation)"
    $disks = @($Backup | ForEach-Object { "DISK = N'$(Format-Sql $_)'" }) -join ', '
    $moves = Read-Database $disks
    Confirm-Begin
    New-Base $disks $moves
    Add-Line (Join-Path $Folder run.tsv) "server`t$version"
    Invoke-Copy '000' 'sound' '0'
    foreach ($line in & $mdfsck prove plan --copies $Copies --seed $Seed) {
        if ($run.Stopped) { break }
        $number, $kind, $copySeed = $line.Split("`t")
        Invoke-Copy $number $kind $copySeed
    }
    & $mdfsck prove report $Folder | Write-Host
    $script:status = $LASTEXITCODE
    Write-Host "all results: $(Join-Path $Folder index.html)"
}

$status, $made = 130, $null
try {
    if ($Copies -lt 1 -or $Copies -gt 999) { Stop-Run 8 "-Copies ${Copies}: give a number from 1 to 999" }
    if ($Position -lt 1) { Stop-Run 8 "-Position ${Position}: the first backup in a file is number 1" }
    if (-not $Clean -and [bool] $Backup -eq [bool] $Data) { Stop-Run 8 'give a database: either -Backup or -Data' }
    if (-not (Test-Here $sqlcmd)) { Stop-Run 4 "there is no $sqlcmd on the PATH; install sqlcmd, or name it with the variable SQLCMD" }
    if (-not (Test-Here $mdfsck)) { Stop-Run 4 "there is no $mdfsck on the PATH; install it, or name it with the variable MDFSCK" }
    # The folder of the session is not that of the process.
    $Folder = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Folder)
    $list, $serverFile = (Join-Path $Folder made.txt), (Join-Path $Folder server.txt)
    if ($Clean -and -not $ServerFolder) { $ServerFolder = Get-Noted folder }
    if (-not $ServerFolder) { $ServerFolder = $Folder }
    # Before the end is cut: D:\ has no other backslash.
    $separator = if ($ServerFolder.Contains('\')) { '\' } else { '/' }
    $ServerFolder = $ServerFolder.TrimEnd('\', '/')
    $serverFiles = "$ServerFolder${separator}files$separator"
    if ($Clean) {
        if (-not (Test-Path -LiteralPath $list)) { Stop-Run 8 "$Folder has no made.txt: no run of the kit was there" }
        $run.Steps = 9000
        Confirm-Server
        $made, $status = $list, 0
    } else {
        if ((Test-Path -LiteralPath $Folder) -and (Get-ChildItem -LiteralPath $Folder -Force)) {
            Stop-Run 8 "$Folder is not empty; name a new folder"
        }
        try {
            'cases', 'sql' | ForEach-Object { $null = [IO.Directory]::CreateDirectory((Join-Path $Folder $_)) }
            New-EmptyFolder (Join-Path $Folder files)
            $made = $list
            [IO.File]::WriteAllText($made, '')
        } catch { Stop-Run 4 "$Folder cannot be written to; name another folder with -Folder" }
        $runName = $prefix + [guid]::NewGuid().ToString('N').Substring(0, 8) + '_'
        Invoke-Run
    }
} catch [OperationCanceledException] {
    [Console]::Error.WriteLine("prove: $($_.Exception.Message)")
} catch {
    [Console]::Error.WriteLine("prove: $($_.Exception.Message) ($($_.InvocationInfo.PositionMessage -replace '\s+', ' '))")
    $status = 4
} finally {
    # Runs after Ctrl+C too, and 130 stays the status then.
    $isClean = try { Clear-Run } catch { [Console]::Error.WriteLine("prove: $($_.Exception.Message)") }
    if (-not $isClean -and $status -ne 130) { $status = $status -bor 4 }
    if ($status -eq 130) { $host.SetShouldExit(130) }
}
exit $status
