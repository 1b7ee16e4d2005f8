# Runs mdfsck and emits what it prints as objects. For Windows PowerShell 5.1 and PowerShell 7; needs no other module.
# The executable is found on the PATH, or named by $env:MDFSCK.
# A field that a line does not have is null, whatever the session wants.
Set-StrictMode -Off
# A database is in one of three states: one that could not be opened is as unknown as one that was not verified to its end.
$States = @{ sound = 'Sound'; corrupt = 'Corrupt'; unknown = 'Unknown'; failed = 'Unknown' }

# Fields that DBAs know by another name; the others keep theirs: `pages_in_use` is PagesInUse.
$FindingNames = @{ msg = 'Error'; text = 'MessageText'; repair = 'RepairLevel'; location = 'Path' }
$HistoryNames = @{
    state = 'Status'; verdict = 'Status'; paths = 'Path'; started = 'Start'; ended = 'End'; seconds = 'Elapsed'
    error = 'Message'; findings_open = 'Findings'; within_seconds = 'Within'; oldest_closed = 'OldestProven' }

function ConvertTo-MdfsckObject($Line, [hashtable] $Names) {
    $object = [ordered] @{}
    foreach ($field in ($Line.psobject.Properties | Where-Object { 'kind', 'v' -notcontains $_.Name })) {
        if (-not $Names.ContainsKey($field.Name)) {
            $words = $field.Name -split '_' | ForEach-Object { $_.Substring(0, 1).ToUpperInvariant() + $_.Substring(1) }
            $Names[$field.Name] = -join $words
        }
        $name, $value = $Names[$field.Name], $field.Value
        if ($name -eq 'Status') { $value = $States[$value] }
        elseif ('seconds', 'within_seconds' -contains $field.Name -and $null -ne $value) { $value = [timespan]::FromSeconds([double] $value) }
        elseif ('Oldest', 'Relations' -contains $name -and $null -ne $value) { $value = ConvertTo-MdfsckObject $value $Names }
        # Times are UTC. 5.1 leaves them as text, 7 makes times of them.
        elseif ($value -is [datetime] -or ($value -is [string] -and $value -match '^\d{4}-\d\d-\d\dT[\d:.]+Z\z')) {
            $value = ([datetime] $value).ToUniversalTime()
        }
        $object[$name] = $value
    }
    [pscustomobject] $object
}

# 5.1 hands arguments to a program as one line, which it does not quote. Backslashes are special only before a quote.
function ConvertTo-MdfsckArgument([string] $Text) {
    '"' + (($Text -replace '(\\*)"', '$1$1\"') -replace '(\\+)\z', '$1$1') + '"'
}

# Parameters that were given, each as one argument, so that no value is taken for an option.
function ConvertTo-MdfsckOption([Collections.IDictionary] $Given) {
    foreach ($option in 'physical-only', 'maxdop', 'memory', 'history', 'set', 'database', 'since', 'within') {
        # Names of parameters have no dash, and either case.
        foreach ($value in $Given[$option -replace '-']) {
            if ($value -isnot [switch]) { '--' + $option + '=' + $value } elseif ($value) { '--' + $option }
        }
    }
    foreach ($value in $Given['ArgumentList']) { $value }
}

# The lines of some kinds as objects, while mdfsck runs; at the end one of kind `exit`. No shell takes part.
function Invoke-Mdfsck([string[]] $Arguments, [string] $Kinds) {
    $name = if ($env:MDFSCK) { $env:MDFSCK } else { 'mdfsck' }
    # The folder of the session is not that of the process; UTF-8, whatever the console has.
    $start = New-Object System.Diagnostics.ProcessStartInfo -Property @{
        FileName = (Get-Command -Name $name -CommandType Application -TotalCount 1 -ErrorAction Stop).Path
        Arguments = @($Arguments | ForEach-Object { ConvertTo-MdfsckArgument $_ }) -join ' '
        WorkingDirectory = (Get-Location -PSProvider FileSystem).ProviderPath
        UseShellExecute = $false; CreateNoWindow = $true; RedirectStandardOutput = $true; RedirectStandardError = $true
        StandardOutputEncoding = [Text.UTF8Encoding]::new($false); StandardErrorEncoding = [Text.UTF8Encoding]::new($false)
    }
    $process = [Diagnostics.Process]::Start($start)
    try {
        $problems = $process.StandardError.ReadToEndAsync()
        do {
            $next = $process.StandardOutput.ReadLineAsync()
            # Ctrl+C gets through between two waits, and ends mdfsck too.
            while (-not $next.Wait(200)) { }
            # Lines of other kinds, such as one for each table and index, are not even parsed.
            if ($next.Result -match ('^\{"kind":"(?:' + $Kinds + ')"')) { ConvertFrom-Json -InputObject $next.Result }
        } while ($null -ne $next.Result)
        $process.WaitForExit()
        [pscustomobject] @{ kind = 'exit'; status = $process.ExitCode; text = $problems.Result.Trim() }
    }
    finally { if (-not $process.HasExited) { $process.Kill() }; $process.Dispose() }
}

function Invoke-MdfsckCheck([object[]] $Path, [Collections.IDictionary] $Given) {
    # A path, a file of Get-ChildItem, or a backup of Get-DbaDbBackupHistory with all its stripes.
    $paths = @($Path | ForEach-Object { if ($_.FullName) { $_.FullName } else { [string] $_ } })
    $arguments = @('check', '--format=json') + @(ConvertTo-MdfsckOption $Given) + @('--') + $paths
    $run = $file = $isReported = $null
    $findings, $open, $errors = [Collections.ArrayList] @(), [Collections.ArrayList] @(), [Collections.ArrayList] @()
    Invoke-Mdfsck $arguments 'run|finding|not_verified|error|summary' | ForEach-Object {
        $line = $_
        if ($line.kind -eq 'run') { $run = $line }
        elseif ($line.kind -eq 'finding') { [void] $findings.Add((ConvertTo-MdfsckObject $line $FindingNames)) }
        elseif ($line.kind -eq 'not_verified') { [void] $open.Add((ConvertTo-MdfsckObject $line @{})) }
        elseif ($line.kind -eq 'error') { [void] $errors.Add($line.text); $file = $line.file }
        elseif ($line.kind -eq 'summary') {
            # What `--allow` accepts is not held against the database; all findings count, shown or not.
            $isOpen = -not $line.complete -and ($open.Count -eq 0 -or @($open | Where-Object { -not $_.Allowed }).Count -gt 0)
            $state = if ($line.findings) { 'corrupt' } elseif ($isOpen -or $errors.Count) { 'unknown' } else { 'sound' }
            $end, $elapsed = (Get-Date), [timespan]::FromSeconds([double] $line.seconds)
            [pscustomobject] @{
                Database = $run.database
                Path = @(if ($run) { $run.files | ForEach-Object { $_.path } | Select-Object -Unique } else { $file })
                Size = [long] ($run.files | ForEach-Object { 8192 * [long] $_.pages } | Measure-Object -Sum).Sum
                Status = $States[$state]; Findings = $findings.ToArray(); NotVerified = $open.ToArray()
                Start = $end - $elapsed; End = $end; Elapsed = $elapsed; RepairLevel = $line.repair_level; Message = $errors -join "`n"
            }
            $isReported = $isReported -or $errors.Count -gt 0
            $run = $file = $null
            $findings.Clear(); $open.Clear(); $errors.Clear()
        }
        # Bits 4 and 8: it could not look, or could not write, and no object says so.
        elseif (($line.status -band 12) -and -not $isReported) { Write-Error -Message $line.text }
        elseif ($line.text) { Write-Verbose -Message $line.text }
    }
}

# Checks databases by their data files, as DBCC CHECKDB would. Files of one database may come one by one.
function Test-MdfsckDatabase {
    [CmdletBinding()]
    param([Parameter(Mandatory = $true, Position = 0, ValueFromPipeline = $true)] [object[]] $Path,
        [switch] $PhysicalOnly, [int] $MaxDop, [string] $Memory, [string] $History, [string[]] $ArgumentList)
    begin { $all = @() } process { $all += $Path } end { Invoke-MdfsckCheck $all $PSBoundParameters }
}

# Checks backups without restoring them: of those in a folder the newest of each database.
function Test-MdfsckBackup {
    [CmdletBinding()]
    param([Parameter(Mandatory = $true, Position = 0, ValueFromPipeline = $true)] [object[]] $Path, [string[]] $Set,
        [switch] $PhysicalOnly, [int] $MaxDop, [string] $Memory, [string] $History, [string[]] $ArgumentList)
    begin { $all = @() } process { $all += $Path } end { Invoke-MdfsckCheck $all $PSBoundParameters }
}

function Invoke-MdfsckHistory([string[]] $Arguments, [string] $Kind, [hashtable] $Names) {
    Invoke-Mdfsck (@('history', '--json') + $Arguments) $Kind | ForEach-Object {
        if ($_.kind -ne 'exit') { ConvertTo-MdfsckObject $_ $Names } elseif ($_.status -band 12) { Write-Error -Message $_.text }
    }
}

# What a history knows: an object for each database, for each run (the newest first), or for each open finding.
function Get-MdfsckHistory {
    [CmdletBinding()]
    param([Parameter(Mandatory = $true, Position = 0)] [string] $Path, [string] $Database, [string] $Since,
        [ValidateSet('Database', 'Run', 'Finding')] [string] $Kind = 'Database')
    $arguments = @(ConvertTo-MdfsckOption $PSBoundParameters) + @($Path)
    if ($Kind -eq 'Finding') { Invoke-MdfsckHistory ($arguments + 'findings') 'finding' $FindingNames }
    elseif ($Kind -eq 'Run') { Invoke-MdfsckHistory ($arguments + 'runs') 'run' $HistoryNames }
    else { Invoke-MdfsckHistory $arguments 'state' $HistoryNames }
}

# Whether every page was read and every relation proven within a time such as 14d: Kept says so, for each database.
function Get-MdfsckCoverage {
    [CmdletBinding()]
    param([Parameter(Mandatory = $true, Position = 0)] [string] $Path, [string] $Within, [string] $Database)
    Invoke-MdfsckHistory (@($Path, 'coverage') + @(ConvertTo-MdfsckOption $PSBoundParameters)) 'coverage' $HistoryNames
}
