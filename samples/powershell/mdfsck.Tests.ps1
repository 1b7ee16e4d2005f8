# Pester 5 or later: `Invoke-Pester`. The executable is a fake one that prints what mdfsck printed of databases of its lab
# (fixtures/make), so that the tests run where mdfsck does not.

BeforeAll {
    Import-Module (Join-Path $PSScriptRoot 'mdfsck.psd1') -Force
    $isWindowsHere = $env:OS -eq 'Windows_NT'
    $fake = if ($isWindowsHere) { 'fake/mdfsck.cmd' } else { 'fake/mdfsck' }
    $env:MDFSCK = Join-Path $PSScriptRoot $fake
    $env:MDFSCK_FAKE_ARGUMENTS = Join-Path ([IO.Path]::GetTempPath()) "mdfsck-arguments-$PID.txt"
    function Use-Fixture([string] $Name, [int] $Status) {
        $env:MDFSCK_FAKE_FIXTURE = Join-Path $PSScriptRoot "fixtures/$Name.jsonl"
        $env:MDFSCK_FAKE_STATUS = $Status
    }
    function Get-Argument { Get-Content -LiteralPath $env:MDFSCK_FAKE_ARGUMENTS -Encoding UTF8 }
}

AfterAll {
    Remove-Item -LiteralPath $env:MDFSCK_FAKE_ARGUMENTS -ErrorAction SilentlyContinue
    Remove-Item Env:MDFSCK, Env:MDFSCK_FAKE_ARGUMENTS, Env:MDFSCK_FAKE_FIXTURE, Env:MDFSCK_FAKE_STATUS -ErrorAction SilentlyContinue
}

Describe 'Test-MdfsckBackup' {
    It 'emits one object for a sound backup' {
        Use-Fixture 'check-sound' 0
        $result = @(Test-MdfsckBackup backups -ErrorAction Stop)
        $result.Count | Should -Be 1
        $result[0].Database | Should -Be 'orders'
        $result[0].Path | Should -Be 'backups/full.bak'
        $result[0].Size | Should -Be 10223616
        $result[0].Status | Should -Be 'Sound'
        $result[0].Findings.Count | Should -Be 0
        $result[0].NotVerified.Count | Should -Be 0
        $result[0].RepairLevel | Should -BeNullOrEmpty
        $result[0].Elapsed | Should -BeOfType [timespan]
        ($result[0].End - $result[0].Start) | Should -Be $result[0].Elapsed
    }
}

Describe 'Test-MdfsckDatabase' {
    It 'nests findings with the names of WITH TABLERESULTS' {
        Use-Fixture 'check-corrupt' 17
        $result = @(Test-MdfsckDatabase "Mary's copy" -ErrorAction Stop)
        $result.Count | Should -Be 1
        $result[0].Status | Should -Be 'Corrupt'
        $result[0].Path | Should -Be "Mary's copy/orders.mdf"
        $result[0].RepairLevel | Should -Be 'repair_allow_data_loss'
        $result[0].Findings.Error | Should -Be @(8939, 8928, 8976, 8978)
        $finding = $result[0].Findings[2]
        $finding.Level | Should -Be 16
        $finding.State | Should -Be 1
        $finding.RepairLevel | Should -Be 'repair_rebuild'
        $finding.ObjectId | Should -Be 373576369
        $finding.IndexId | Should -Be 1
        $finding.PartitionId | Should -Be '72057594038583296'
        $finding.File | Should -Be 1
        $finding.Page | Should -Be 728
        $finding.RefPage | Should -Be 722
        $finding.RefSlot | Should -Be 7
        $finding.MessageText | Should -BeLike 'Table error: Object ID 373576369, *'
        $result[0].NotVerified.Id | Should -Be @('index.damaged', 'index.damaged')
    }

    It 'keeps several databases apart, and says of one that it could not be opened' {
        Use-Fixture 'check-several' 21
        $result = @(Test-MdfsckDatabase backups, "Mary's copy", missing.mdf -ErrorAction Stop)
        $result.Status | Should -Be @('Sound', 'Corrupt', 'Unknown')
        $result[0].Findings.Count | Should -Be 0
        $result[1].Findings.Count | Should -Be 4
        $result[2].Path | Should -Be 'missing.mdf'
        $result[2].Message | Should -BeLike 'missing.mdf: cannot be opened*'
        $result[2].Size | Should -Be 0
    }

    It 'writes an error if nothing could be checked, and emits nothing' {
        Use-Fixture 'check-failed' 4
        $result = @(Test-MdfsckDatabase missing.mdf -ErrorAction SilentlyContinue -ErrorVariable problems)
        $result.Count | Should -Be 0
        $problems[0].ToString() | Should -Be 'mdfsck: what went wrong'
        { Test-MdfsckDatabase missing.mdf -ErrorAction Stop } | Should -Throw
    }

    It 'writes an error if the history could not be written, and emits the result' {
        Use-Fixture 'check-sound' 4
        $result = @(Test-MdfsckDatabase orders.mdf -History checks.db -ErrorAction SilentlyContinue -ErrorVariable problems)
        $result[0].Status | Should -Be 'Sound'
        $problems.Count | Should -BeGreaterThan 0
    }

    It 'hands over options and names as they are' {
        Use-Fixture 'check-sound' 0
        $strange = 'a "b" c', "Mary's", 'ends with \', 'two  blanks', '$(id) & ; | `', '-dash', "Gr$([char] 0xF6)sse"
        $null = $strange | Test-MdfsckDatabase -PhysicalOnly -MaxDop 2 -Memory 1GB -ArgumentList '--table=dbo.a b', '--noindex'
        if ($isWindowsHere) {
            # cmd.exe shows them as it got them.
            Get-Argument | Should -BeLike '"check" "--format=json" "--physical-only" *'
        } else {
            Get-Argument | Should -Be (@('check', '--format=json', '--physical-only', '--maxdop=2', '--memory=1GB', '--table=dbo.a b',
                    '--noindex', '--') + $strange)
        }
    }

    It 'quotes as Windows programs read it' {
        InModuleScope mdfsck {
            ConvertTo-MdfsckArgument '' | Should -Be '""'
            ConvertTo-MdfsckArgument 'D:\SQL Data\' | Should -Be '"D:\SQL Data\\"'
            ConvertTo-MdfsckArgument 'a\b' | Should -Be '"a\b"'
            ConvertTo-MdfsckArgument 'a"b' | Should -Be '"a\"b"'
            ConvertTo-MdfsckArgument 'a\"b' | Should -Be '"a\\\"b"'
        }
    }

    It 'takes files of Get-ChildItem, and the stripes of a backup of dbatools' {
        Use-Fixture 'check-sound' 0
        $file = Get-Item (Join-Path $PSScriptRoot 'mdfsck.psd1')
        $backup = [pscustomobject] @{ FullName = 'a_1.bak', 'a_2.bak' }
        $null = $file, $backup | Test-MdfsckBackup -Set 1
        $text = (Get-Argument) -join ' '
        $text | Should -Match 'mdfsck\.psd1"? "?a_1\.bak"? "?a_2\.bak'
        $text | Should -Match '--set=1'
    }

    It 'says what is missing if mdfsck is not there' {
        $before = $env:MDFSCK
        try {
            $env:MDFSCK = 'no-such-program'
            { Test-MdfsckDatabase orders.mdf } | Should -Throw '*no-such-program*'
        } finally { $env:MDFSCK = $before }
    }
}

Describe 'Get-MdfsckHistory' {
    It 'emits an object for each database, with times in UTC' {
        Use-Fixture 'history' 0
        $state = Get-MdfsckHistory checks.db
        $state.Database | Should -Be 'orders'
        $state.Status | Should -Be 'Corrupt'
        $state.Findings | Should -Be 4
        $state.OldestProven | Should -Be ([datetime]::new(2024, 2, 1, 0, 1, 1, 'Utc'))
        $state.OldestProven.Kind | Should -Be 'Utc'
    }

    It 'emits an object for each run' {
        Use-Fixture 'history-runs' 0
        $runs = Get-MdfsckHistory checks.db -Kind Run
        $runs.Status | Should -Be @('Corrupt', 'Sound')
        $runs[0].FindingsNew | Should -Be 4
        $runs[0].PagesInUse | Should -Be 721
        $runs[0].Start | Should -BeOfType [datetime]
        $runs[0].Elapsed | Should -BeOfType [timespan]
    }

    It 'emits an object for each open finding' {
        Use-Fixture 'history-findings' 0
        $findings = Get-MdfsckHistory checks.db -Kind Finding -Database orders
        $findings.Error | Should -Be @(8939, 8928, 8976, 8978)
        $findings[0].Key | Should -Be 1
        $findings[0].Life | Should -Be 'new'
        $findings[0].State | Should -Be 98
        (Get-Argument) -join ' ' | Should -Match '--database=orders"? "?checks\.db"? "?findings'
    }
}

Describe 'Get-MdfsckCoverage' {
    It 'says whether the promise is kept' {
        Use-Fixture 'coverage-broken' 16
        $coverage = Get-MdfsckCoverage checks.db -Within 14d -ErrorAction Stop
        $coverage.Kept | Should -BeFalse
        $coverage.Within | Should -Be ([timespan]::FromDays(14))
        $coverage.PagesInUse | Should -Be 721
        $coverage.Relations.Within | Should -Be 239
        $coverage.Oldest.At | Should -BeOfType [datetime]
        Use-Fixture 'coverage-kept' 0
        (Get-MdfsckCoverage checks.db -Within 36500d).Kept | Should -BeTrue
    }
}
