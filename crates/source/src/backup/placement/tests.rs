use super::*;
use crate::backup::chain::tests::set;
use crate::{PROGRAM_BYTES, SharedFile};

/// A set with one data file, and `region` as its only region of pages.
fn with_pages(region: Region) -> BackupSet {
    let pages_copied = (region.length / PAGE_BYTES as u64) as u32;
    let file = BackupFile { file_id: 1, is_data: true, pages_copied, bytes: region.length, ..BackupFile::default() };
    BackupSet { files: vec![file], pages: vec![region], ..set(SetKind::Full, 1, 1).set }
}

#[test]
fn what_is_read_of_a_region_at_once_is_within_the_grant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape");
    // The region contains no allocation maps, so its extents are placed by the names in their pages.
    let extents = 40;
    let length = extents as u64 * FRAME_BYTES;
    std::fs::write(&path, vec![0; 512 + length as usize]).unwrap();
    let media = Media::open(&path, SharedFile::open(&path).unwrap(), &Room::new(None, 0)).unwrap().unwrap();
    let set = with_pages(Region { at: 512, length, checksum: None });
    let at_once = 16 * FRAME_BYTES;
    let granted = PROGRAM_BYTES + (extents * BYTES_PER_ORDERED_EXTENT) as u64 + at_once;
    let placed = |granted| place(std::slice::from_ref(&media), &[(0, &set)], &Room::new(Some(granted), 0));
    assert!(placed(granted).is_ok());
    assert!(placed(granted - 1).is_err());
}
