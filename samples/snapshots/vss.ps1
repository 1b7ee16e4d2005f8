# Makes shadow copies of the volumes that have the paths, all in one step, and exposes them in folders:
#   mdfsck check --snapshot-with powershell.exe --snapshot-argument=-NoProfile --snapshot-argument=-File `
#       --snapshot-argument=C:\mdfsck\vss.ps1 PATH...
# Runs as administrator. Windows Server has diskshadow.exe, which makes one shadow copy set of several volumes, so that data and log
# are of one moment. Other editions have no diskshadow.exe; there, all paths must be on one volume.
#
# By default no writer takes part: the files are as after a power failure, and mdfsck recovers them with their log. SQL Server does
# not notice. With -Writers (--snapshot-argument=-Writers after the path of this file), SqlServerWriter stops all databases on these
# volumes for a moment. SQL Server then records a backup in msdb; this may become the base of later differential backups.
param(
    [switch]$Writers,
    [Parameter(Mandatory = $true, Position = 0)][ValidateSet('create', 'remove')][string]$Verb,
    [Parameter(Position = 1, ValueFromRemainingArguments = $true)][string[]]$Lines
)
$ErrorActionPreference = 'Stop'
# mdfsck reads UTF-8.
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
# Every user may make folders in ProgramData. So this is one folder, not a folder in another one, which could be exchanged.
$root = Join-Path $env:ProgramData 'mdfsck-shadows'
# Administrators, and the system.
$trusted = 'S-1-5-32-544', 'S-1-5-18' | ForEach-Object { New-Object Security.Principal.SecurityIdentifier $_ }
$hasDiskShadow = [bool](Get-Command diskshadow.exe -ErrorAction SilentlyContinue)

function Write-Note([string]$Text) { [Console]::Error.WriteLine($Text) }

# Makes the folder of all snapshots, which only administrators and the system can use. What others can change there could lead the
# commands of this script elsewhere, so a folder that others have made or can use is refused.
function Confirm-Root {
    $security = New-Object Security.AccessControl.DirectorySecurity
    $security.SetAccessRuleProtection($true, $false)
    $security.SetOwner($trusted[0])
    foreach ($who in $trusted) {
        $security.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule $who, 'FullControl', 'ContainerInherit, ObjectInherit', 'None', 'Allow'))
    }
    # The folder has these rights from its first moment. One that exists stays as it is. PowerShell 7 has another call for this.
    if ($PSVersionTable.PSVersion.Major -gt 5) {
        [void][IO.FileSystemAclExtensions]::CreateDirectory($security, $root)
    } else {
        [void][IO.Directory]::CreateDirectory($root, $security)
    }
    $found = Get-Acl -LiteralPath $root
    $sid = [Security.Principal.SecurityIdentifier]
    $allowed = $found.GetAccessRules($true, $true, $sid) | Where-Object { $_.AccessControlType -eq 'Allow' }
    $others = @($found.GetOwner($sid)) + @($allowed | ForEach-Object { $_.IdentityReference }) | Where-Object { $trusted -notcontains $_ }
    $isLink = [IO.File]::GetAttributes($root) -band [IO.FileAttributes]::ReparsePoint
    if ($isLink -or $others) { throw "${root}: is a link, or others than administrators have rights to it; remove it" }
}

# The ids of the shadow copies of a snapshot. They are written as soon as they are known, so that a shadow copy is removed even if it
# was not yet exposed or linked.
function Get-IdFile([string]$Folder) { Join-Path $Folder 'shadows.txt' }
function Add-Id([string]$Folder, [string]$Id) { [IO.File]::AppendAllText((Get-IdFile $Folder), "$Id`r`n") }

# Runs the commands of diskshadow.exe. Its output goes to stderr, since stdout is for the places of the snapshot.
function Invoke-DiskShadow([string[]]$Commands, [string]$Folder) {
    $file = [IO.Path]::GetTempFileName()
    try {
        [IO.File]::WriteAllLines($file, $Commands, [Text.Encoding]::Default)
        & diskshadow.exe /s $file | ForEach-Object {
            # The line that names an alias of this script and the id of its shadow copy, in any language.
            if ($Folder -and $_ -match 'mdfsck[0-9]' -and $_ -match '\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}') {
                Add-Id $Folder $Matches[0]
            }
            Write-Note $_
        }
        if ($LASTEXITCODE -ne 0) { throw "diskshadow.exe ended with exit status $LASTEXITCODE" }
    } finally {
        Remove-Item -LiteralPath $file
    }
}

function New-Snapshot([string[]]$Paths) {
    $volumes = @(Get-CimInstance Win32_Volume | Where-Object { $_.Name -notlike '\\?\*' })
    $folder = Join-Path $root ('mdfsck-' + [guid]::NewGuid().ToString('N'))
    $used = @()
    foreach ($path in $Paths) {
        # A volume may be mounted in a folder of another one: the longest name is that of the file's volume.
        $volume = $volumes | Where-Object { ($path + '\').StartsWith($_.Name, [StringComparison]::OrdinalIgnoreCase) } |
            Sort-Object { $_.Name.Length } -Descending | Select-Object -First 1
        if (-not $volume) { throw "${path}: is on no local volume" }
        if ($used -notcontains $volume.Name) { $used += $volume.Name }
        $place = Join-Path $folder ([string][array]::IndexOf($used, $volume.Name))
        # The lines come first, so that mdfsck can have everything removed even if this script is ended.
        [Console]::Out.WriteLine((Join-Path $place ($path + '\').Substring($volume.Name.Length)).TrimEnd('\'))
    }
    if (-not $hasDiskShadow -and $used.Count -gt 1) {
        throw "the paths are on $($used.Count) volumes, and without diskshadow.exe their shadow copies are not of one moment"
    }
    Confirm-Root
    New-Item -ItemType Directory -Path $folder | Out-Null
    if (-not $hasDiskShadow) {
        $made = Invoke-CimMethod -ClassName Win32_ShadowCopy -MethodName Create -Arguments @{ Volume = $used[0]; Context = 'ClientAccessible' }
        if ($made.ReturnValue -ne 0) { throw "the shadow copy of $($used[0]) cannot be made: error $($made.ReturnValue)" }
        Add-Id $folder $made.ShadowID
        $shadow = Get-CimInstance Win32_ShadowCopy | Where-Object { $_.ID -eq $made.ShadowID }
        # The backslash makes the link lead to the root folder of the shadow copy.
        cmd.exe /d /c mklink /d (Join-Path $folder '0') "$($shadow.DeviceObject)\" | ForEach-Object { Write-Note $_ }
        if ($LASTEXITCODE -ne 0) { throw 'the shadow copy cannot be linked' }
        return
    }
    $commands = @("SET METADATA `"$(Join-Path $folder 'metadata.cab')`"", 'SET VERBOSE OFF')
    if ($Writers) {
        # SqlServerWriter must be there.
        $commands += 'SET CONTEXT PERSISTENT', 'BEGIN BACKUP', 'WRITER VERIFY {a65faa63-5ea8-4ebc-9dbd-a0c4db26912a}'
    } else {
        $commands += 'SET CONTEXT PERSISTENT NOWRITERS'
    }
    $names = 0..($used.Count - 1)
    $commands += $names | ForEach-Object { "ADD VOLUME `"$($used[$_])`" ALIAS mdfsck$_" }
    $commands += 'CREATE'
    if ($Writers) { $commands += 'END BACKUP' }
    foreach ($name in $names) {
        $place = Join-Path $folder ([string]$name)
        New-Item -ItemType Directory -Path $place | Out-Null
        $commands += "EXPOSE %mdfsck$name% `"$place`""
    }
    Invoke-DiskShadow $commands $folder
}

function Remove-Snapshot([string[]]$Places) {
    $pattern = '^' + [regex]::Escape($root) + '\\(mdfsck-[0-9a-f]{32})\\[0-9]+(\\|$)'
    $folders = foreach ($place in $Places) {
        if ($place -notmatch $pattern -or $place -match '\\\.\.(\\|$)') { throw "${place}: is no snapshot of this script" }
        Join-Path $root $Matches[1]
    }
    if (-not (Test-Path -LiteralPath $root)) { return }
    Confirm-Root
    foreach ($folder in ($folders | Sort-Object -Unique | Where-Object { Test-Path -LiteralPath $_ })) {
        $ids = @(Get-IdFile $folder | Where-Object { Test-Path -LiteralPath $_ } | ForEach-Object { [IO.File]::ReadAllLines($_) })
        $shadows = Get-CimInstance Win32_ShadowCopy | Where-Object {
            $ids -contains $_.ID -or "$($_.ExposedName)".StartsWith("$folder\", [StringComparison]::OrdinalIgnoreCase)
        }
        foreach ($shadow in $shadows) {
            if ($hasDiskShadow) { Invoke-DiskShadow "DELETE SHADOWS ID $($shadow.ID)" } else { Remove-CimInstance -InputObject $shadow }
        }
        foreach ($place in Get-ChildItem -LiteralPath $folder -Directory -Force) {
            # Deletes the empty folder or the link, never what a link leads to.
            if (Test-Path -LiteralPath $place.FullName) { [IO.Directory]::Delete($place.FullName) }
        }
        Get-ChildItem -LiteralPath $folder -File -Force | Remove-Item
        [IO.Directory]::Delete($folder)
    }
}

try {
    if ($Verb -eq 'create') { New-Snapshot $Lines } else { Remove-Snapshot $Lines }
} catch {
    Write-Note "vss.ps1: $_"
    exit 1
}
exit 0
