@{
    RootModule = 'mdfsck.psm1'
    ModuleVersion = '0.1.0'
    GUID = '4fd39177-ede4-4053-a7a7-e9241f4742d0'
    Author = 'The mdfsck project'
    Description = 'Checks SQL Server databases and backups offline with mdfsck, and emits the results as objects.'
    PowerShellVersion = '5.1'
    CompatiblePSEditions = 'Desktop', 'Core'
    FunctionsToExport = 'Test-MdfsckDatabase', 'Test-MdfsckBackup', 'Get-MdfsckHistory', 'Get-MdfsckCoverage'
    CmdletsToExport = @()
    VariablesToExport = @()
    AliasesToExport = @()
}
