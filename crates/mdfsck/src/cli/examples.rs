//! The help texts before and after the options: the purpose of the program, exit status, examples.

pub(super) const ABOUT: &str =
    "Checks SQL Server database files as DBCC CHECKDB does, but offline: without a server, a restore or a snapshot.";

pub(super) const LONG_ABOUT: &str = "\
Checks SQL Server database files as DBCC CHECKDB does, but offline: without a server, a restore or a snapshot.

mdfsck reads the .mdf and .ndf files of one or more databases, or their backups. It opens these files shared and read-only and never writes \
to them. Findings are printed in DBCC's own words, and only if the damage is proven. Parts that could not be verified are listed \
separately, with the reason, and are never called errors.";

pub(super) const EXIT_STATUS: &str = "\
Exit status (bits that add up):
   0  sound and complete
   1  corruption found
   4  files could not be read or opened, or results could not be written
   8  wrong usage
  16  incomplete: part of the requested check could not be verified

Examples:
  mdfsck check Northwind.mdf              check a database that has one file
  mdfsck check /data                      check all databases in a folder
  mdfsck check Northwind.bak              check a backup without restoring it
  mdfsck info Northwind.mdf               show what this file contains
  mdfsck explain 8976                     explain message 8976, and what to do";

pub(super) const CHECK_EXAMPLES: &str = "\
Exit status (bits that add up):
   0  sound and complete           4  could not read the files or write the results
   1  corruption found             8  wrong usage
  16  incomplete: part of the requested check could not be verified

Examples:
  mdfsck check sales.mdf sales_2.ndf
          prints the lines that DBCC CHECKDB (sales) would print
  mdfsck check --no-infomsgs sales.mdf
          prints only findings and their totals: no output means sound and complete
  mdfsck check --physical-only --progress lines /data/sales
          checks only pages, record headers and allocation
  mdfsck check --databases 2 /backups
          checks the newest backup of each database in a folder, two at a time, and prints a table of all databases
  mdfsck check --set all '/backups/*/*.bak'
          checks each full and differential backup in the subfolders
  mdfsck check --table Sales.Orders --table dbo.Customers sales.mdf
          checks these two tables, as DBCC CHECKTABLE does
  mdfsck check --tableresults --output sales.csv sales.mdf
          writes one row per finding, with the columns of WITH TABLERESULTS
  mdfsck check --format json sales.mdf | jq 'select(.kind == \"finding\")'
          prints the findings as JSON, for programs
  mdfsck check --history checks.db /backups
          also records the run in a history, which 'mdfsck history checks.db' shows
  mdfsck check sales.bak --history checks.db --window 3h --within 14d
          checks for three hours, and the next run continues; a full cycle must not take more than 14 days
  mdfsck check --html sales.html sales.bak
          also writes an HTML page with the findings, their bytes, and a map of the files
  mdfsck check --snapshot-with ./lvm.sh --snapshot-argument 20G /var/opt/mssql/data
          checks a snapshot of files in use, which the program lvm.sh makes and removes";

pub(super) const HISTORY_EXAMPLES: &str = "\
Examples:
  mdfsck check /backups --history checks.db
          checks the backups and records the run
  mdfsck history checks.db
          prints one line per database, with its state and the age of this state
  mdfsck history checks.db coverage --within 14d
          ends with status 0 if every page was read and every relation proven in the last 14 days, otherwise with 16
  mdfsck history checks.db findings
          lists open findings, each with its key, its age, and whether a later run saw it again
  mdfsck history checks.db diff
          lists findings that appeared or disappeared between the last two runs
  mdfsck history checks.db html -o estate.html
          writes one page with all databases, worst first
  mdfsck history checks.db ack 17 --because 'is repaired on Sunday' --until 2026-12-01
          marks finding 17 as known; it is still reported
  mdfsck history checks.db runs --csv > CommandLog.csv
          writes the runs with the columns of the table CommandLog";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  mdfsck serve --history checks.db
          starts the server and prints its address, which begins with http://127.0.0.1:8898/
  mdfsck serve --history checks.db --allow-ack --token-file /etc/mdfsck/token
          lets users acknowledge findings with the token in this file
  mdfsck serve --history checks.db --listen 10.0.0.5:8898 --allow-remote
          lets other machines connect too; put a TLS proxy with authentication in front of the server";

pub(super) const WATCH_EXAMPLES: &str = "\
Exit status with --once (bits that add up): 0 every checked backup is sound; 1 corruption found; 4 a file could not be read, a check failed, \
or an event could not be passed on; 8 wrong usage; 16 something could not be verified, a backup is still incomplete after --patience, or \
--max-age or --within is exceeded. Results that an earlier run has reported do not set a bit again. Without --once, the status after a signal is 0.

Examples:
  mdfsck watch /backups --history checks.db --once
          checks the new backups and ends, for use with a scheduler
  mdfsck watch /backups s3://sql/prod --history checks.db --jobs 4 --memory 4GB --during 22:00-05:00
          runs as a service that checks four backups at a time, only at night
  mdfsck watch /backups --history checks.db --policy sample:7d --max-age 26h --metrics mdfsck.prom
          checks one backup of each database per week, reports databases without a new backup, and writes metrics for Prometheus
  mdfsck watch /backups --history checks.db --on-event ./mail --event-argument dba@example.com
          runs a program for each event
  mdfsck watch databases.txt --history checks.db --once --csv
          checks the data files that a text file lists in lines NAME PATH...";

pub(super) const PLAN_EXAMPLES: &str = "\
Exit status: 0 the plan is complete; 4 a file cannot be read, or the plan cannot be written; 8 wrong usage.

All machines need the same build of mdfsck, the same paths to the files, and the folder of the plan. Between plan and merge, the files must \
not change, so use a backup, a snapshot, or files of a database that is shut down.

Examples:
  mdfsck plan /backups/sales.bak --dir /shared/plan --task-size 64GB
          makes tasks that read at most 64 GB each
  mdfsck plan /snapshots/sales --dir /shared/plan --physical-only
          plans a check with --physical-only; plan has the same options for scope and depth as check
  mdfsck plan --status /shared/plan
          prints the progress of the plan as JSON
  mdfsck plan --status /shared/plan --missing | tr , '\\n' | xargs -P 4 -n 1 mdfsck task /shared/plan
          runs all tasks that have no part yet, four at a time
  sbatch --array=$(mdfsck plan --status /shared/plan --missing) slurm.sh
          runs all tasks that have no part yet on a cluster";

pub(super) const TASK_EXAMPLES: &str = "\
Exit status: 0 the parts exist; 4 a file cannot be read or written, or has changed since the plan was made; 8 wrong usage, or the plan was made \
by another build of mdfsck.

Examples:
  mdfsck task /shared/plan 0
  mdfsck task /shared/plan 3,7-9 --maxdop 4
          runs four tasks, one after another
  mdfsck task /shared/plan env
          runs the task whose number the scheduler sets in JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID,
          AWS_BATCH_JOB_ARRAY_INDEX or AZ_BATCH_TASK_ID";

pub(super) const MERGE_EXAMPLES: &str = "\
The exit status is that of check. It is also 4 if a file has changed since the plan was made, 8 if parts are missing, damaged or from another plan, \
and 32 if more tasks must be run before there are results.

Examples:
  mdfsck merge /shared/plan
          prints the results that 'mdfsck check' would print
  mdfsck merge /shared/plan --format json --output sales.json --history checks.db
          writes the results as JSON and records the run; merge has the same output options as check";

pub(super) const INFO_EXAMPLES: &str = "\
Examples:
  mdfsck info sales.mdf
  mdfsck info --json /data
          shows each database and backup in a folder
  mdfsck info sales.bak
  gunzip < sales.bak.gz | mdfsck info -
          reads the backup from standard input, without a temporary copy";

pub(super) const AUDIT_EXAMPLES: &str = "\
Exit status (bits that add up):
   0  no page contradicts the log  4  could not read the files or write the results
   1  a page contradicts the log   8  wrong usage
  16  incomplete: some pages or part of the log could not be compared

Examples:
  mdfsck audit sales.mdf sales_log.ldf
          finds pages that lack a change that was logged before the last checkpoint
  mdfsck audit /data/sales --json | jq 'select(.id == \"log.lost-write\") | .page'
          prints the addresses of the pages whose last write was lost";

pub(super) const LOG_EXAMPLES: &str = "\
Examples:
  mdfsck log sales_log.ldf
          shows virtual log files, checkpoints, open and largest transactions
  mdfsck log --page 1:153 sales_log.ldf
          shows the log records that changed this page
  mdfsck log --from 00000022:00000a78:0001 --to 00000022:00000a80:0010 sales_log.ldf
          shows the log records between two LSNs
  mdfsck log --json sales_log.ldf | jq 'select(.kind == \"checkpoint\" and .ms > 1000)'
          shows checkpoints that took longer than a second";

pub(super) const CHECKPOINTS_EXAMPLES: &str = "\
Events and error logs contain only database IDs. To show database names, also give the primary data files of the databases, or the primary data file of master. \
Times in events are in UTC, error logs state their offset from UTC, and times in transaction logs are the server's local time.

Exit status: 0 all files were read; 4 a file cannot be read; 16 a file is cut off or damaged, or the checkpoints before and after a --change \
cannot be compared.

Examples:
  mdfsck checkpoints checkpoints_0_*.xel ERRORLOG ERRORLOG.1 sales.mdf
          shows the checkpoints of all databases, and the writes of slow checkpoints
  mdfsck checkpoints --change Sales=2016-07-09T03:30Z trace.xel sales.mdf
          compares checkpoints before and after a change of the target recovery time
  mdfsck checkpoints --html checkpoints.html /var/opt/mssql/log
          writes a page with charts: durations over time, checkpoints per hour
  mdfsck checkpoints sales_log.ldf
          shows the checkpoints that are still in the transaction log
  mdfsck checkpoints --json trace.xel | jq 'select(.kind == \"checkpoint\" and .ms > 1000)'
          shows checkpoints that took longer than a second";

pub(super) const EVENTS_EXAMPLES: &str = "\
Exit status: 0 all events were read; 4 a file cannot be read; 16 a file is cut off or damaged, or has values of unknown types.

Examples:
  mdfsck events system_health_0_133617460949850000.xel
          prints all events, one JSON object per line
  mdfsck events --name error_reported --format csv /var/opt/mssql/log > errors.csv
          prints the errors in all event files of a folder as CSV
  mdfsck events system_health*.xel | jq 'select(.fields.error_number == 823)'
          prints failed reads and writes";

pub(super) const TABLES_EXAMPLES: &str = "\
Row and page counts come from the catalog and are not verified here; 'mdfsck check' counts the rows and pages.

Examples:
  mdfsck tables sales.mdf
  mdfsck tables --all --json sales.mdf | jq 'select(.index_type == \"heap\")'";

pub(super) const LINT_EXAMPLES: &str = "\
Examples:
  mdfsck lint sales.mdf
  mdfsck lint --json /data/sales | jq .rule";

pub(super) const BENCH_EXAMPLES: &str = "\
Exit status: 0 all cells were measured; 4 a file cannot be read or written, or runs of the same depth had different findings; 8 wrong \
usage; 16 a cell could not run. The results show the reason for such a cell, and the other cells are measured.

Examples:
  mdfsck bench sales.mdf
  mdfsck bench --maxdop 1,2,4,8 --configurations full,physical --html bench.html /data/sales
  mdfsck bench --size 20GB --schema orders --files 8 --cache warm,cold --html bench.html
          builds a database, measures it and removes it
  mdfsck bench --save before sales.mdf && ... && mdfsck bench --against before sales.mdf";

pub(super) const PAGE_EXAMPLES: &str = "\
Examples:
  mdfsck page 1:9 sales.mdf               shows the boot page
  mdfsck page '(3:153)' sales.mdf sales_2.ndf
          shows the page at an address that was copied from a message
  mdfsck page 1:153 sales.mdf sales_log.ldf
          shows a page that the log changes, as stored and as recovered
  mdfsck page 1:153 --raw sales.mdf       prints the 8192 bytes in hexadecimal";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  mdfsck config                           lists all defaults and limits, with their files
  MDFSCK_CONFIG=night.toml mdfsck config  lists those that count if this file is named
  MDFSCK_CONFIG= mdfsck check sales.bak   checks without defaults";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  mdfsck explain                          lists all message numbers and IDs
  mdfsck explain 8976
  mdfsck explain tree.child-unseen
  mdfsck explain 'Error: 824, Severity: 24, State: 2.'
  mdfsck explain - < ERRORLOG             says what happened, causes first, and what to do next
  mdfsck explain --all                    prints one line per check and limit";

pub(super) const ADVISE_EXAMPLES: &str = "\
Exit status as for check: 0 sound and complete; 1 corruption found; 4 a file cannot be read; 8 wrong usage; 16 something could not be
verified.

Examples:
  mdfsck advise sales.mdf
          shows the damage, the lost data, and the steps to recover
  mdfsck advise sales.mdf --backups /backups/sales
          also finds the newest backup with sound copies of the damaged pages
  mdfsck advise sales.mdf --backups /backups/sales --script plan.sql
          also writes the statements to a script, for review
  mdfsck advise monday.bak --backups /backups/sales
          finds an undamaged backup to use instead of monday.bak
  mdfsck advise sales.mdf --json | jq 'select(.kind == \"step\") | {n, action, pages}'";

pub(super) const COMPARE_EXAMPLES: &str = "\
The files must be those that CHECKDB checked: files of a detached database, a backup that was restored for CHECKDB, or a snapshot. Give the \
options with which CHECKDB ran, such as --physical-only.

Exit status (bits that add up):
   0  nothing differs beyond what is explained
   1  the results differ           8  wrong usage
   4  could not read the files    16  incomplete: the results of CHECKDB are cut off, or are
                                      messages in a language other than English, or part of the
                                      check could not be verified

Examples:
  sqlcmd -S . -W -s, -w 65535 -o result.csv -Q \"DBCC CHECKDB (sales) WITH TABLERESULTS, ALL_ERRORMSGS\"
  mdfsck compare-dbcc result.csv sales.bak
          compares the rows of CHECKDB with a check of the backup
  mdfsck compare-dbcc pasted.txt sales.mdf sales_log.ldf
          compares messages that were copied from a window or from a log of a job
  mdfsck compare-dbcc --json result.csv sales.bak | jq 'select(.state == \"server-only\")'
          prints what only the server found";

pub(super) const CHAIN_EXAMPLES: &str = "\
Exit status: 0 all chains are complete, or you can restore to the time of --at; 1 --verify found errors; 4 a file cannot be read; 8 \
wrong usage; 16 the log has a gap, a stripe is missing, a file is damaged, the backups do not allow a restore to the time of --at, or \
--verify could not verify everything.

Without --verify, only the labels of the backups are read, not their pages.

Examples:
  mdfsck chain /backups/sales
          shows the points in time you can restore to, and the shortest path to the latest of them
  mdfsck chain --at 2024-03-01T13:10:00 /backups/sales
          shows whether you can restore to this time, and from which files
  mdfsck chain --verify /backups/sales
          restores each chain in memory and checks it; suggests a path without damaged backups
  mdfsck chain --at 2024-03-01T13:10:00 --script restore.sql /backups/sales
          writes RESTORE statements, for review
  mdfsck chain --json /backups | jq '{database, points}'";

pub(super) const EXTRACT_EXAMPLES: &str = "\
Existing files are never overwritten. To complete an interrupted run, repeat its command.

Exit status: 0 all pages were written; 4 a file cannot be read or written; 8 wrong usage; 16 pages are missing and were written as zeros, \
or --recovered could not recover everything and wrote nothing.

Examples:
  mdfsck extract sales.bak --output /tmp/sales
  mdfsck extract sales_1.bak sales_2.bak sales_diff.bak --output /tmp/sales
  mdfsck extract --recovered sales.mdf sales_log.ldf --output /tmp/sales
          recovers the data files of a storage snapshot with their log";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mdfsck completions bash > /etc/bash_completion.d/mdfsck
  mdfsck completions fish > ~/.config/fish/completions/mdfsck.fish
  mdfsck completions powershell | Out-String | Invoke-Expression
          installs the script for this session; to install it for every session, add the line to $PROFILE";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  mdfsck man | man -l -
  mdfsck man check > mdfsck-check.1
  mdfsck man lab new > mdfsck-lab-new.1
  mdfsck man --markdown | less";

pub(super) const EXPORT_EXAMPLES: &str = "\
Exit status (bits that add up):
   0  everything was exported      4  could not read the files or write the results
  16  incomplete: the list shows   8  wrong usage
      what could not be read

Examples:
  mdfsck export sales.mdf -o rows
          writes all user tables as CSV, one file per table
  mdfsck export sales.bak -o rows --format parquet --table Sales.Orders
          writes one table of a backup, for pandas, Polars or DuckDB
  mdfsck export /data/sales -o rows --format sql --definitions
          writes T-SQL scripts for the tables with their rows, and for procedures, functions, views and triggers";

pub(super) const ROWS_EXAMPLES: &str = "\
Examples:
  mdfsck rows Sales.Orders sales.mdf
          shows the first 20 rows
  mdfsck rows Orders sales.bak --limit 1000 --format csv > orders.csv
          writes the first 1000 rows of a table in a backup";
