//! Finds out the kind of a file from its content, not from its name.

use std::path::Path;

use format::file_header::FileHeader;
use format::log::vlf;
use format::page::PAGE_BYTES;
use format::protection::{self, undo_torn_bits};
use format::{Page, PageBytes, PageId, PageType};

use crate::arguments::argument;

/// The number of bytes that [`identify`] needs: the first four pages.
pub(crate) const IDENTIFY_BYTES: usize = 4 * PAGE_BYTES;

/// The kind of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A data file.
    Data {
        /// File ID.
        file_id: u16,
        /// Whether page 0 is an undamaged file header page.
        header_is_sound: bool,
    },
    /// A transaction log file.
    Log,
    /// A backup, with its kind as text.
    Backup(&'static str),
    /// Another kind of file.
    Other,
}

/// A format of compressed files that programs other than SQL Server write.
#[derive(PartialEq, Eq, Debug)]
pub struct Archive {
    /// Name of the format.
    pub name: &'static str,
    start: &'static [u8],
    /// The command that decompresses a file to standard output.
    command: &'static str,
}

/// The known formats.
const ARCHIVES: [Archive; 8] = [
    Archive { name: "gzip", start: &[0x1F, 0x8B], command: "gunzip -c" },
    Archive { name: "zstd", start: &[0x28, 0xB5, 0x2F, 0xFD], command: "zstd -dc" },
    Archive { name: "xz", start: &[0xFD, b'7', b'z', b'X', b'Z', 0], command: "xz -dc" },
    Archive { name: "7-Zip", start: &[b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C], command: "7z x -so" },
    Archive { name: "bzip2", start: b"BZh", command: "bunzip2 -c" },
    Archive { name: "lz4", start: &[0x04, 0x22, 0x4D, 0x18], command: "lz4 -dc" },
    Archive { name: "RAR", start: b"Rar!\x1A\x07", command: "unrar p -inul" },
    Archive { name: "zip", start: b"PK\x03\x04", command: "unzip -p" },
];

impl Archive {
    /// The format of a compressed file that starts with the bytes `start`; `None` if the bytes belong to no known format.
    ///
    /// ```
    /// assert_eq!(source::Archive::of(b"PK\x03\x04...").map(|archive| archive.name), Some("zip"));
    /// assert_eq!(source::Archive::of(b"TAPE"), None);
    /// ```
    pub fn of(start: &[u8]) -> Option<&'static Self> {
        ARCHIVES.iter().find(|archive| start.starts_with(archive.start))
    }

    /// Returns a command that decompresses the archive into a pipe and checks the backup there, without writing it to
    /// disk first.
    pub(crate) fn pipe(&self, path: &Path) -> String {
        let path = if path.as_os_str() == "-" { "FILE".to_owned() } else { argument(path) };
        format!("{} {path} | mdfsck check -", self.command)
    }
}

/// A kind of file that contains a database, but not in a format that can be checked.
pub(crate) struct Holder {
    /// The kind of file, and what can be checked instead.
    text: &'static str,
    /// Whether the file has the pages of the database as they are, in pieces of whole sectors.
    has_pages: bool,
    start: &'static [u8],
    /// Names of files in the archive. If this list is not empty, the first bytes of the file do not suffice to identify
    /// the kind: one of these names must also occur in the first pages, or the file must have one of `extensions`.
    members: &'static [&'static str],
    /// Extensions that identify the kind if the first pages do not.
    extensions: &'static [&'static str],
}

const HOLDERS: [Holder; 3] = [
    Holder {
        text: "is an export of a database (.bacpac or .dacpac), which has no pages to check; check the database from which it was exported",
        has_pages: false,
        start: b"PK\x03\x04",
        members: &["DacMetadata.xml", "Origin.xml"],
        extensions: &["bacpac", "dacpac"],
    },
    Holder {
        text: "is a disk image (VHDX): mount the image read-only, and check its files",
        has_pages: true,
        start: b"vhdxfile",
        members: &[],
        extensions: &[],
    },
    Holder {
        text: "is a disk image (VHD): mount the image read-only, and check its files",
        has_pages: true,
        // These bytes are at the start of a virtual disk, unless it has a fixed size. A fixed-size virtual disk begins
        // with the partition table of the disk, and is recognized by its extension and by the signature of this table.
        start: b"conectix",
        members: &[],
        extensions: &["vhd"],
    },
];

impl Holder {
    /// The kind of the file at `path`, and what can be checked instead.
    pub(crate) fn told(&self, path: &Path) -> String {
        match self.has_pages {
            true => format!("{}; {} that are in the image", self.text, carve_command(path)),
            false => self.text.to_owned(),
        }
    }

    /// The kind of a file with this path and these first bytes; `None` if it is not one of [`HOLDERS`].
    pub(crate) fn of(path: &Path, start: &[u8]) -> Option<&'static Self> {
        let has = |name: &str| start.windows(name.len()).any(|part| part == name.as_bytes());
        let extension = path.extension().unwrap_or_default();
        HOLDERS.iter().find(|holder| {
            let is_named = holder.extensions.iter().any(|known| extension.eq_ignore_ascii_case(known));
            match (start.starts_with(holder.start), holder.members) {
                (true, []) => true,
                (true, members) => is_named || members.iter().copied().any(has),
                (false, []) => is_named && start.get(510..512) == Some(&[0x55, 0xAA]),
                (false, _) => false,
            }
        })
    }
}

/// The beginning of a clause that names the command to read the pages of a file wherever they are: `'mdfsck check
/// --carve FILE' reads the pages`.
pub(crate) fn carve_command(path: &Path) -> String {
    format!("'mdfsck check --carve {}' reads the pages", argument(path))
}

/// Identifies a file by its first four pages; a shorter file is given completely.
pub fn identify(start: &[u8]) -> FileKind {
    if start.starts_with(b"MSSQLBAK") {
        return FileKind::Backup("compressed SQL Server backup");
    }
    if start.starts_with(b"TAPE") {
        return FileKind::Backup("SQL Server backup");
    }
    let header = page_at(start, 0);
    let header_is_sound = header.as_ref().is_some_and(is_file_header);
    if header_is_sound && start.get(PAGE_BYTES) == Some(&vlf::SIGNATURE) {
        return FileKind::Log;
    }
    // A data file with a damaged header page is recognized by its PFS, GAM and SGAM pages.
    let by_maps = [(1, PageType::Pfs), (2, PageType::Gam), (3, PageType::Sgam)].into_iter().find_map(|(page, kind)| {
        let bytes = page_at(start, page)?;
        let header = *Page::new(&bytes).header();
        (header.kind() == Some(kind) && header.page_id().page == page && protection::verify(&bytes).is_ok())
            .then(|| header.page_id().file)
    });
    let by_header = header.as_ref().map(|bytes| Page::new(bytes).header().page_id().file);
    // A log file with a damaged first VLF is recognized by its header page, which has no filegroup.
    let is_without_group = || {
        let record = header.as_ref().and_then(|bytes| FileHeader::read(Page::new(bytes)).map(|file| file.filegroup()));
        record == Some(0)
    };
    if header_is_sound && by_maps.is_none() && is_without_group() {
        return FileKind::Log;
    }
    match (header_is_sound, by_header, by_maps) {
        (true, Some(file_id), _) | (false, _, Some(file_id)) if file_id != 0 => {
            FileKind::Data { file_id, header_is_sound }
        }
        _ => FileKind::Other,
    }
}

/// Whether the name of a file has an extension of backups, possibly followed by another one, as in `a.bak.locked`.
pub(crate) fn names_a_backup(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_of_backups = |part: &str| ["bak", "trn", "dif", "diff"].iter().any(|known| part.eq_ignore_ascii_case(known));
    name.split('.').skip(1).any(is_of_backups)
}

/// Whether the name of a file has an extension of data files, possibly followed by another one, as in `a.mdf.locked`.
pub(crate) fn names_a_data_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').skip(1).any(|part| part.eq_ignore_ascii_case("mdf") || part.eq_ignore_ascii_case("ndf"))
}

/// Whether `bytes` are an undamaged file header page: the type, the page ID and the protection must be correct, and the
/// record must contain the same file ID.
pub(crate) fn is_file_header(bytes: &PageBytes) -> bool {
    let mut undone = *bytes;
    undo_torn_bits(&mut undone);
    let page = Page::new(&undone);
    let id = page.header().page_id();
    page.header().kind() == Some(PageType::FileHeader)
        && id == PageId::new(id.file, 0)
        && protection::verify(bytes).is_ok()
        && FileHeader::read(page).is_some_and(|header| header.file_id() == id.file)
}

fn page_at(start: &[u8], page: u32) -> Option<PageBytes> {
    start.get(page as usize * PAGE_BYTES..)?.first_chunk::<PAGE_BYTES>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zip_with_the_metadata_of_an_export_is_no_compressed_backup() {
        let zip = |member: &str| [b"PK\x03\x04........", member.as_bytes(), b"...."].concat();
        let of = |name: &str, start: &[u8]| Holder::of(Path::new(name), start).map(|holder| holder.text);
        assert!(of("a", &zip("DacMetadata.xml")).is_some_and(|text| text.contains("bacpac")));
        assert!(of("a.BACPAC", &zip("Data/1.bcp")).is_some_and(|text| text.contains("bacpac")), "by its name");
        assert!(of("a.bacpac", b"no zip").is_none());
        assert!(of("a.zip", &zip("sales.bak")).is_none() && Archive::of(&zip("sales.bak")).is_some());
        assert!(of("a", b"vhdxfile").is_some() && of("a", b"").is_none());
        let disk = [&[0; 510][..], &[0x55, 0xAA]].concat();
        assert!(of("a.vhd", &disk).is_some() && of("a.img", &disk).is_none() && of("a.vhd", &[0; 512]).is_none());
    }

    #[test]
    fn content_decides_not_the_name() {
        assert_eq!(identify(b"TAPE rest"), FileKind::Backup("SQL Server backup"));
        assert_eq!(identify(b"MSSQLBAK\x02"), FileKind::Backup("compressed SQL Server backup"));
        assert_eq!(identify(b""), FileKind::Other);
        assert_eq!(identify(&[0; IDENTIFY_BYTES]), FileKind::Other);
        assert_eq!(identify(&[0xC0; IDENTIFY_BYTES]), FileKind::Other);
    }
}
