//! The help texts before and after the options: the purpose of the program, exit status, examples.

pub(super) const ABOUT: &str =
    "Checks SQL Server database files offline, as DBCC CHECKDB does: no server, no restore, no snapshot.";

pub(super) const LONG_ABOUT: &str = "\
Checks SQL Server database files offline, as DBCC CHECKDB does: no server, no restore, no snapshot.

mdfsck reads the .mdf and .ndf files of databases, or backups of them, as many as you like. It opens them shared and read-only and never writes \
to them. Findings are printed in DBCC's own words, and each is a proof: what could not be verified is listed separately, with \
the reason, and is never called an error.";

pub(super) const EXIT_STATUS: &str = "\
Exit status (bits, they add):
   0  sound and complete
   1  corruption found
   4  files could not be read or opened, or results could not be written
   8  wrong usage
  16  incomplete: part of the requested check could not be verified

Examples:
  mdfsck check Northwind.mdf              check a database of one file
  mdfsck check /data                      check all databases in a folder
  mdfsck check Northwind.bak              check a backup without restoring it
  mdfsck info Northwind.mdf               what is this file?
  mdfsck explain 8976                     what does this message mean, and what to do?";

pub(super) const CHECK_EXAMPLES: &str = "\
Exit status (bits, they add):
   0  sound and complete           4  could not read the files or write the results
   1  corruption found             8  wrong usage
  16  incomplete: part of the requested check could not be verified

Examples:
  mdfsck check sales.mdf sales_2.ndf
          what DBCC CHECKDB (sales) would print
  mdfsck check --no-infomsgs sales.mdf
          only findings and their totals: no output means sound and complete
  mdfsck check --physical-only --progress lines /data/sales
          only pages, record headers and allocation
  mdfsck check --databases 2 /backups
          the newest backup of each database in a folder, two at a time, and a table of all
  mdfsck check --set all '/backups/*/*.bak'
          each full and differential backup in the subfolders
  mdfsck check --table Sales.Orders --table dbo.Customers sales.mdf
          these two tables, as DBCC CHECKTABLE
  mdfsck check --tableresults --output sales.csv sales.mdf
          one row per finding, with the columns of WITH TABLERESULTS
  mdfsck check --format json sales.mdf | jq 'select(.kind == \"finding\")'
          the same for programs
  mdfsck check --history checks.db /backups
          records the run, for 'mdfsck history checks.db'
  mdfsck check sales.bak --history checks.db --window 3h --within 14d
          as much as fits into three hours; the next run continues
  mdfsck check --html sales.html sales.bak
          a page to look at and to send: findings with their bytes, and a map of the files";

pub(super) const HISTORY_EXAMPLES: &str = "\
Examples:
  mdfsck check /backups --history checks.db
          records each run
  mdfsck history checks.db
          a line per database: its state, and the age of that state
  mdfsck history checks.db coverage --within 14d
          was every page read and every relation proven within 14 days? Exit status 0, or 16 if not
  mdfsck history checks.db findings
          open findings, each with its key, since when, and whether it was seen again
  mdfsck history checks.db diff
          what came and went between the last two runs
  mdfsck history checks.db html -o estate.html
          all databases as one page, worst first
  mdfsck history checks.db ack 17 --because 'is repaired on Sunday' --until 2026-12-01
          marks finding 17 as known; it is still reported
  mdfsck history checks.db runs --csv > CommandLog.csv
          with the columns of the table CommandLog";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  mdfsck serve --history checks.db
          prints its address, http://127.0.0.1:8898/
  mdfsck serve --history checks.db --allow-ack --token-file /etc/mdfsck/token
          findings may be acknowledged with the token in this file
  mdfsck serve --history checks.db --listen 10.0.0.5:8898 --allow-remote
          for other machines too; put a TLS proxy with authentication in front of it";

pub(super) const WATCH_EXAMPLES: &str = "\
Exit status with --once: 0 every backup whose check ended is sound, 1 corruption, 4 something could not be read, checked or passed on, 8 wrong \
usage, 16 unknown: not everything could be verified, a backup is still not whole after --patience, --max-age or --within is broken. Bits \
add. Results that an earlier run has reported do not count again. Without --once the status is 0 after a signal.

Examples:
  mdfsck watch /backups --history checks.db --once
          for a scheduler: checks what is new, and ends
  mdfsck watch /backups s3://sql/prod --history checks.db --jobs 4 --memory 4GB --during 22:00-05:00
          as a service: four at a time, at night
  mdfsck watch /backups --history checks.db --policy sample:7d --max-age 26h --metrics mdfsck.prom
          one backup of each database per week; reports databases without a new backup; metrics for Prometheus
  mdfsck watch /backups --history checks.db --on-event ./mail --event-argument dba@example.com
          runs a program for each event
  mdfsck watch databases.txt --history checks.db --once --csv
          data files, from a list with lines NAME PATH...";

pub(super) const PLAN_EXAMPLES: &str = "\
Exit status: 0 the plan is made, 4 a file cannot be read, or the plan cannot be written, 8 wrong usage.

All machines need the same mdfsck, the same paths to the same files, and the folder of the plan. Between the plan and its merge the files must \
not change: use a backup, a snapshot, or files of a database that is shut down.

Examples:
  mdfsck plan /backups/sales.bak --dir /shared/plan --task-size 64GB
          tasks that read 64 GB each at most
  mdfsck plan /snapshots/sales --dir /shared/plan --physical-only
          with the scope and depth of a check
  mdfsck plan --status /shared/plan
          its progress, as JSON
  mdfsck plan --status /shared/plan --missing | tr , '\\n' | xargs -P 4 -n 1 mdfsck task /shared/plan
          all tasks that have no part yet, four at a time
  sbatch --array=$(mdfsck plan --status /shared/plan --missing) slurm.sh
          the same on a cluster";

pub(super) const TASK_EXAMPLES: &str = "\
Exit status: 0 the parts are there, 4 a file cannot be read or written, or has changed since the plan was made, 8 wrong usage, or the plan is \
of another mdfsck.

Examples:
  mdfsck task /shared/plan 0
  mdfsck task /shared/plan 3,7-9 --maxdop 4
          four tasks, one after the other
  mdfsck task /shared/plan env
          the task that the scheduler names: JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID, AWS_BATCH_JOB_ARRAY_INDEX or
          AZ_BATCH_TASK_ID";

pub(super) const MERGE_EXAMPLES: &str = "\
Exit status as for check; 4 also if a file has changed since the plan was made, 8 also if parts are missing, damaged or of another plan; \
32 if more tasks must be run before there are results.

Examples:
  mdfsck merge /shared/plan
          what 'mdfsck check' would print
  mdfsck merge /shared/plan --format json --output sales.json --history checks.db
          with the output options of check";

pub(super) const INFO_EXAMPLES: &str = "\
Examples:
  mdfsck info sales.mdf
  mdfsck info --json /data
          each database and backup in a folder
  mdfsck info sales.bak
  gunzip < sales.bak.gz | mdfsck info -
          reads the stream once and keeps nothing";

pub(super) const AUDIT_EXAMPLES: &str = "\
Exit status (bits, they add):
   0  no page contradicts the log  4  could not read the files or write the results
   1  a page contradicts the log   8  wrong usage
  16  incomplete: part of the pages or of the log could not be compared

Examples:
  mdfsck audit sales.mdf sales_log.ldf
          pages that lack a change that was logged before the last checkpoint
  mdfsck audit /data/sales --json | jq 'select(.id == \"log.lost-write\") | .page'
          the same for programs";

pub(super) const LOG_EXAMPLES: &str = "\
Examples:
  mdfsck log sales_log.ldf
          virtual log files, checkpoints, open and largest transactions
  mdfsck log --page 1:153 sales_log.ldf
          what changed this page
  mdfsck log --from 00000022:00000a78:0001 --to 00000022:00000a80:0010 sales_log.ldf
          the records between two LSNs
  mdfsck log --json sales_log.ldf | jq 'select(.kind == \"checkpoint\" and .ms > 1000)'
          checkpoints that took longer than a second";

pub(super) const CHECKPOINTS_EXAMPLES: &str = "\
Events and error logs name databases by their ids; the primary data file of a database gives its name. Events are in UTC, error \
logs say how far they are from it, transaction logs have the server's local time.

Exit status: 0 all files were read, 4 a file cannot be read, 16 a file is cut off or damaged, or a change cannot be compared.

Examples:
  mdfsck checkpoints checkpoints_0_*.xel ERRORLOG ERRORLOG.1 sales.mdf
          checkpoints of all databases, the slow ones with their writes
  mdfsck checkpoints --change Sales=2016-07-09T03:30Z trace.xel sales.mdf
          before and after the target recovery time was changed
  mdfsck checkpoints --html checkpoints.html /var/opt/mssql/log
          a page with charts: durations over time, checkpoints per hour
  mdfsck checkpoints sales_log.ldf
          the checkpoints that are still in the transaction log
  mdfsck checkpoints --json trace.xel | jq 'select(.kind == \"checkpoint\" and .ms > 1000)'
          checkpoints that took longer than a second";

pub(super) const EVENTS_EXAMPLES: &str = "\
Exit status: 0 all events were read, 4 a file cannot be read, 16 a file is cut off or damaged, or has values of unknown types.

Examples:
  mdfsck events system_health_0_133617460949850000.xel
          all events, one JSON object per line
  mdfsck events --name error_reported --format csv /var/opt/mssql/log > errors.csv
          errors of all event files in a folder, as a table
  mdfsck events system_health*.xel | jq 'select(.fields.error_number == 823)'
          failed reads and writes";

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
Exit status: 0 everything was measured, 4 a file cannot be read or written, or runs of one depth found different things, 8 wrong \
usage, 16 a cell could not run: it is marked with the reason, and the others are measured.

Examples:
  mdfsck bench sales.mdf
  mdfsck bench --maxdop 1,2,4,8 --configurations full,physical --html bench.html /data/sales
  mdfsck bench --size 20GB --schema orders --files 8 --cache warm,cold --html bench.html
          builds a database, measures it and removes it
  mdfsck bench --save before sales.mdf && ... && mdfsck bench --against before sales.mdf";

pub(super) const PAGE_EXAMPLES: &str = "\
Examples:
  mdfsck page 1:9 sales.mdf               the boot page
  mdfsck page '(3:153)' sales.mdf sales_2.ndf
          an address as messages print it
  mdfsck page 1:153 sales.mdf sales_log.ldf
          a page that the log changes: as stored, and as recovered
  mdfsck page 1:153 --raw sales.mdf       8192 bytes in hexadecimal";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  mdfsck explain                          all numbers and ids
  mdfsck explain 8976
  mdfsck explain tree.child-unseen
  mdfsck explain 'Error: 824, Severity: 24, State: 2.'
  mdfsck explain --all                    one line per check";

pub(super) const ADVISE_EXAMPLES: &str = "\
Exit status as for check: 0 sound and complete, 1 corruption found, 4 a file cannot be read, 8 wrong usage, 16 something could not be
verified.

Examples:
  mdfsck advise sales.mdf
          what is damaged, what is lost, and what to do first
  mdfsck advise sales.mdf --backups /backups/sales
          the same, with the newest backup whose copies of the damaged pages are sound
  mdfsck advise sales.mdf --backups /backups/sales --script plan.sql
          the statements too, to review
  mdfsck advise monday.bak --backups /backups/sales
          which other backup is clean
  mdfsck advise sales.mdf --json | jq 'select(.kind == \"step\") | {n, action, pages}'";

pub(super) const CHAIN_EXAMPLES: &str = "\
Exit status: 0 all chains are complete, or the time of --at can be restored; 1 --verify found errors; 4 a file cannot be read; 8 \
wrong usage; 16 a gap, a missing stripe, a damaged file, no path to the time of --at, or something that --verify could not verify.

Without --verify, only the labels of the backups are read, not their pages.

Examples:
  mdfsck chain /backups/sales
          the points in time you can restore to, and the shortest path to the latest one
  mdfsck chain --at 2024-03-01T13:10:00 /backups/sales
          whether you can restore to that time, and from which files
  mdfsck chain --verify /backups/sales
          restores each chain in memory and checks it; offers a path around damage
  mdfsck chain --at 2024-03-01T13:10:00 --script restore.sql /backups/sales
          RESTORE statements to review
  mdfsck chain --json /backups | jq '{database, points}'";

pub(super) const EXTRACT_EXAMPLES: &str = "\
Existing files are never overwritten. An interrupted run is completed by the same command.

Exit status: 0 all pages were written, 4 a file cannot be read or written, 8 wrong usage, 16 pages are missing (written as zeros), \
or with --recovered something is in doubt (nothing is written).

Examples:
  mdfsck extract sales.bak --output /tmp/sales
  mdfsck extract sales_1.bak sales_2.bak sales_diff.bak --output /tmp/sales
  mdfsck extract --recovered sales.mdf sales_log.ldf --output /tmp/sales
          data files of a storage snapshot, with the changes in their log";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mdfsck completions bash > /etc/bash_completion.d/mdfsck
  mdfsck completions fish > ~/.config/fish/completions/mdfsck.fish
  mdfsck completions powershell | Out-String | Invoke-Expression
          for this session; add the line to $PROFILE for every session";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  mdfsck man | man -l -
  mdfsck man check > mdfsck-check.1
  mdfsck man lab new > mdfsck-lab-new.1
  mdfsck man --markdown | less";

pub(super) const EXPORT_EXAMPLES: &str = "\
Exit status (bits, they add):
   0  everything is in the files   4  could not read the files or write the results
  16  incomplete: something could  8  wrong usage
      not be read, and is listed

Examples:
  mdfsck export sales.mdf -o rows
          all user tables as CSV, one file each
  mdfsck export sales.bak -o rows --format parquet --table Sales.Orders
          one table of a backup, for pandas, Polars or DuckDB
  mdfsck export /data/sales -o rows --format sql --definitions
          scripts that create the tables with their rows, and procedures, functions, views and triggers";

pub(super) const ROWS_EXAMPLES: &str = "\
Examples:
  mdfsck rows Sales.Orders sales.mdf
          the first 20 rows
  mdfsck rows Orders sales.bak --limit 1000 --format csv > orders.csv
          a part of a table in a backup";
