//! scratch
fn main() {
    for path in std::env::args().skip(1) {
        let Ok(files) = source::DataFiles::open(&[path.clone().into()]) else { continue };
        let db = catalog::load(&files);
        let r = check::run(&files, &db, &check::Options::default(), &check::Silent);
        let u = |clustered: bool| {
            r.rowsets
                .iter()
                .filter(|x| x.type_code == "U" && x.index_pages > 0 && (x.index_id == 1) == clustered && x.index_id > 0)
                .max_by_key(|x| x.data_pages + x.index_pages)
                .map(|x| {
                    let rs = db.rowsets.iter().find(|q| q.id == x.partition_id).unwrap();
                    (x.name.clone(), x.data_pages, x.index_pages, rs.layout.key(catalog::Level::Leaf))
                })
        };
        let t = r.file_totals[0].clone();
        println!("{path} pages {} extents {} c {:?} nc {:?}", files.files_len(), t.extents, u(true), u(false));
    }
}
trait L {
    fn files_len(&self) -> u32;
}
impl L for source::DataFiles {
    fn files_len(&self) -> u32 {
        source::PageSource::files(self)[0].pages
    }
}
