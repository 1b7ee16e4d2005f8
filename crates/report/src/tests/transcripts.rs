//! Tests against output that real servers printed.

use findings::{Finding, Owner, Report, registry};
use format::{AllocUnitId, PageId};

use super::{QUIET, TABLE};
use crate::fixture::{case_16, owner, page_io, report, rowset, service_broker, shown};
use crate::{Format, View};

/// Two damaged leaf pages of a clustered index. The headers of the pages are garbage.
pub(crate) fn case_17() -> Report {
    let mut report = report("SharePoint", 5);
    report.rowsets = vec![
        rowset("sys", "sysrscols", 3, (790, 9)),
        rowset("dbo", "TimerRunningJobs", 1_400_000_000, (0, 1)),
        rowset("dbo", "TimerJobHistory", 1_413_580_074, (343_473, 11_002)),
        rowset("dbo", "TimerScheduledJobs", 1_500_000_000, (149, 2)),
    ];
    report.service_broker = service_broker();
    let unknown = |unit: i64, file: u16, page: u32, against: i64| {
        let owner = Owner::unknown(AllocUnitId(unit.cast_unsigned()));
        page_io(owner, PageId::new(file, page), 12_716_041, against)
    };
    let mut findings = vec![
        unknown(-446_695_742_437_851_136, 44_310, 821_622_156, -4),
        unknown(3_740_297_223_666_139_136, 29_042, 0u32.wrapping_sub(1_451_589_555), -14),
    ];
    let owner = owner(1_413_580_074, 72_057_594_041_663_488, 72_057_594_043_367_424);
    let page = |page| PageId::new(1, page);
    for (bad, previous) in [(15_840, 15_831), (15_848, 15_846)] {
        findings.extend([
            Finding::new(&registry::PAGE_UNPROCESSED).owner(owner).page(page(bad)),
            Finding::new(&registry::TREE_CHILD_UNSEEN)
                .owner(owner)
                .page(page(bad))
                .ref_page(page(15_990))
                .page_value("other_page", page(previous)),
            Finding::new(&registry::TREE_PREV_UNSEEN).owner(owner).page(page(bad + 1)).ref_page(page(bad)),
        ]);
    }
    report.findings = findings.into();
    report
}

/// The transcript of the case, with a shorter database name.
pub(crate) const CASE_17: &str = "\
DBCC results for 'SharePoint'.
Service Broker Msg 9675, State 1: Message Types analyzed: 14.
Service Broker Msg 9676, State 1: Service Contracts analyzed: 6.
Service Broker Msg 9667, State 1: Services analyzed: 3.
Service Broker Msg 9668, State 1: Service Queues analyzed: 3.
Service Broker Msg 9669, State 1: Conversation Endpoints analyzed: 0.
Service Broker Msg 9674, State 1: Conversation Groups analyzed: 0.
Service Broker Msg 9670, State 1: Remote Service Bindings analyzed: 0.
Service Broker Msg 9605, State 1: Conversation Priorities analyzed: 0.
Msg 8939, Level 16, State 98, Line 1
Table error: Object ID 0, index ID -1, partition ID 0, alloc unit ID -446695742437851136 (type Unknown), page (44310:821622156). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 12716041 and -4.
Msg 8939, Level 16, State 98, Line 1
Table error: Object ID 0, index ID -1, partition ID 0, alloc unit ID 3740297223666139136 (type Unknown), page (29042:-1451589555). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values are 12716041 and -14.
CHECKDB found 0 allocation errors and 2 consistency errors not associated with any single object.
DBCC results for 'sys.sysrscols'.
There are 790 rows in 9 pages for object \"sys.sysrscols\".
DBCC results for 'TimerRunningJobs'.
There are 0 rows in 1 pages for object \"TimerRunningJobs\".
DBCC results for 'TimerJobHistory'.
Msg 8928, Level 16, State 1, Line 1
Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data): Page (1:15840) could not be processed.  See other errors for details.
Msg 8976, Level 16, State 1, Line 1
Table error: Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data). Page (1:15840) was not seen in the scan although its parent (1:15990) and previous (1:15831) refer to it. Check any previous errors.
Msg 8978, Level 16, State 1, Line 1
Table error: Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data). Page (1:15841) is missing a reference from previous page (1:15840). Possible chain linkage problem.
Msg 8928, Level 16, State 1, Line 1
Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data): Page (1:15848) could not be processed.  See other errors for details.
Msg 8976, Level 16, State 1, Line 1
Table error: Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data). Page (1:15848) was not seen in the scan although its parent (1:15990) and previous (1:15846) refer to it. Check any previous errors.
Msg 8978, Level 16, State 1, Line 1
Table error: Object ID 1413580074, index ID 1, partition ID 72057594041663488, alloc unit ID 72057594043367424 (type In-row data). Page (1:15849) is missing a reference from previous page (1:15848). Possible chain linkage problem.
There are 343473 rows in 11002 pages for object \"TimerJobHistory\".
CHECKDB found 0 allocation errors and 6 consistency errors in table 'TimerJobHistory' (object ID 1413580074).
DBCC results for 'TimerScheduledJobs'.
There are 149 rows in 2 pages for object \"TimerScheduledJobs\".
CHECKDB found 0 allocation errors and 8 consistency errors in database 'SharePoint'.
repair_allow_data_loss is the minimum repair level for the errors found by DBCC CHECKDB (SharePoint).
DBCC execution completed. If DBCC printed error messages, contact your system administrator.
";

#[test]
fn lines_of_case_17() {
    assert_eq!(shown(Format::Text, &case_17(), View::default()), CASE_17);
}

#[test]
fn no_infomsgs_leaves_findings_and_summaries() {
    let expected: String = CASE_17
        .lines()
        .filter(|line| !["DBCC", "There are", "Service Broker"].iter().any(|info| line.starts_with(info)))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(shown(Format::Text, &case_17(), QUIET), expected);
}

#[test]
fn rows_of_case_16() {
    let text = shown(TABLE, &case_16(), QUIET);
    let lines: Vec<&str> = text.lines().collect();
    let owner = "Object ID 901578250, index ID 1, partition ID 72057594045726720, alloc unit ID 72057594052476928 \
                 (type In-row data)";
    let place = "0,21,1,901578250,1,72057594045726720,72057594052476928,21,0,1,392,0,21,0,0,0,0,1";
    assert_eq!(
        lines,
        [
            "Error,Level,State,MessageText,RepairLevel,Status,DbId,DbFragId,ObjectId,IndexId,PartitionId,AllocUnitId,\
             RidDbId,RidPruId,File,Page,Slot,RefDbId,RefPruId,RefFile,RefPage,RefSlot,Allocation"
                .to_owned(),
            format!(
                "8939,16,98,\"Table error: {owner}, page (1:392). Test (IS_OFF (BUF_IOERR, pBUF->bstat)) failed. Values \
                 are 133129 and -4.\",repair_allow_data_loss,{place}"
            ),
            format!(
                "8928,16,1,\"{owner}: Page (1:392) could not be processed.  See other errors for details.\",\
                 repair_allow_data_loss,{place}"
            ),
            format!(
                "8980,16,1,\"Table error: {owner}. Index node page (0:0), slot 0 refers to child page (1:392) and previous \
                 child (0:0), but they were not encountered.\",repair_rebuild,{place}"
            ),
            "8990,10,1,CHECKDB found 0 allocation errors and 3 consistency errors in table 'Customer' (object ID \
             901578250).,,0,21,1,901578250,0,0,0,0,0,0,0,0,0,0,0,0,0,1"
                .to_owned(),
            "8989,10,1,CHECKDB found 0 allocation errors and 3 consistency errors in database \
             'ExamplesDB_CorruptionCheckDB'.,,0,21,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1"
                .to_owned(),
        ]
    );
}

#[test]
fn checktable_rows_come_in_the_order_of_case_21() {
    let mut report = case_16();
    report.options.scope = findings::Scope::Tables(vec![901_578_250]);
    let text = shown(TABLE, &report, View::default());
    let numbers: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(numbers, ["2593", "8939", "8928", "8980", "8990"]);
}
