//! Decimals at the limits of their precision. The rows are checked together, and then one by one. The greatest valid
//! value of a column's type must not be reported, and the next greater value must be reported.

use check::Silent;
use findings::Options;
use format::{Page, PageId};
use lab::SqlType;
use lab::description::{Column, Compression, Table, Values};
use libtest_mimic::{Failed, Trial};
use trials::mutate::{PageRole, Pages, seal};

use super::forms::database;
use super::heads::written;
use super::{judge, ways};

const PRECISIONS: [u8; 9] = [1, 8, 9, 10, 18, 19, 20, 28, 38];
/// The number of CHECKDB's message for a value outside the domain of its type.
const OUT_OF_RANGE: u16 = 2570;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("together: decimals at the ends of their precision", plain),
        Trial::test("together: noise in compressed decimals", || super::noise_in_built(&described(Compression::Row))),
    ]
}

fn described(compression: Compression) -> lab::Description {
    let values = |scale: u8| Values::Uniform { low: -90 * i64::from(scale), high: 1_000_000_000_000 };
    let decimals = PRECISIONS.iter().map(|precision| {
        let scale = precision / 3;
        Column::new(&format!("p{precision}"), SqlType::decimal(*precision, scale), values(scale))
    });
    let id = Column::new("id", SqlType::INT, Values::Serial { start: 1, step: 1 });
    let columns = [id].into_iter().chain(decimals).collect();
    database("decimals", vec![Table { columns, rows: 300, compression, ..Table::default() }])
}

fn plain() -> Result<(), Failed> {
    let files = written(&described(Compression::None))?;
    let catalog = catalog::load(&files);
    let pages = Pages::new(&files, &catalog);
    let is_of_table = |id: &PageId| {
        let Some(bytes) = pages.read(*id).filter(|bytes| pages.role(*id, bytes) == PageRole::Heap) else {
            return false;
        };
        let rowset = pages.rowset(Page::new(&bytes).header().alloc_unit());
        rowset.is_some_and(|rowset| !catalog.is_system_table(rowset.object_id))
    };
    let page = pages.ids().find(is_of_table).ok_or("no page of the table")?;
    let sound = super::read(&files, page)?;
    let slots = Page::new(&sound).header().slot_count.get();
    let mut offset = 4 + size_of::<i32>();
    for precision in PRECISIONS {
        let length = usize::from(SqlType::decimal(precision, 0).length);
        let limit = 10u128.pow(precision.into());
        let most = if length == 17 { u128::MAX } else { (1 << (8 * (length - 1))) - 1 };
        for magnitude in [0, 1, limit - 1, limit, limit + 1, most] {
            for sign in [0, 1, 2] {
                let is_value = sign <= 1 && magnitude < limit && (sign, magnitude) != (0, 0);
                let mut bytes = sound;
                let slot = (magnitude % 7) as u16 * (slots / 7);
                let at = usize::from(Page::new(&sound).slot_offset(slot).ok_or("no slot")?) + offset;
                bytes[at] = sign;
                bytes[at + 1..at + length].copy_from_slice(&magnitude.to_le_bytes()[..length - 1]);
                judge(&files, &catalog, page, bytes)?;
                seal(&mut bytes);
                let changed = files.with_pages([(page, bytes)])?;
                for options in ways(&Options::default()) {
                    let report = check::run(&changed, &catalog, &options, &Silent);
                    let found: Vec<_> = report.findings.iter().map(|finding| finding.check.msg).collect();
                    if found != if is_value { vec![] } else { vec![OUT_OF_RANGE] } {
                        let value = format!("{sign} {magnitude} as decimal({precision})");
                        return Err(format!("{value}, row by row {}: {found:?}", options.row_by_row).into());
                    }
                }
            }
        }
        offset += length;
    }
    Ok(())
}
