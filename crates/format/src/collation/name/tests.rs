use std::collections::BTreeMap;

use super::*;

/// Every ID that has a name, with that name.
fn named() -> BTreeMap<u32, String> {
    let windows = 0..1 << 20;
    let sql = SQL_COLLATIONS.iter().map(|(id, _)| *id);
    let name = |id| CollationId(id).name().map(|name| (id, name));
    windows.chain(sql).filter_map(name).collect()
}

#[test]
fn all_collations_of_a_server_of_2025_have_a_name_of_their_own() {
    let named = named();
    let names: std::collections::BTreeSet<&String> = named.values().collect();
    assert_eq!((named.len(), names.len()), (5540, 5540));
    let count = |what: &dyn Fn(&str) -> bool| names.iter().filter(|name| what(name)).count();
    assert_eq!(count(&|name| name.starts_with("SQL_")), 77);
    assert_eq!(count(&|name| name.contains("_UTF8")), 93 * 16 + 2 * 32 + 2 * 16 + 1);
    assert_eq!(count(&|name| name.contains("_BIN2_UTF8")), 1);
    assert_eq!(count(&|name| name.contains("_160")), 2 * 16);
}

#[test]
fn each_name_leads_to_its_id_in_capital_and_small_letters() {
    for (id, name) in named() {
        assert_eq!(CollationId::named(&name), Some(CollationId(id)), "{name}");
        assert_eq!(CollationId::named(&name.to_lowercase()), Some(CollationId(id)), "{name}");
    }
    for name in
        ["", "Latin1_General", "Latin1_General_CI", "Latin1_General_CI_AS_CI", "Größe_CI_AS", "Latin1_Generäl_CI_AS"]
    {
        assert_eq!(CollationId::named(name), None, "{name}");
    }
}

/// The expected checksum was computed from the list of IDs and names in MSSQLLogAnalyzer (MIT license); see
/// docs/format/collations.md#names.
#[test]
fn ids_and_names_agree_with_a_list_of_a_server_of_2017() {
    let mut lines = 0;
    let sum =
        named().iter().filter(|(_, name)| !name.contains("_UTF8")).fold(0xCBF2_9CE4_8422_2325, |sum, (id, name)| {
            lines += 1;
            let line = format!("{id:08X} {name}\n");
            line.bytes().fold(sum, |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
        });
    assert_eq!((lines, sum), (3955, 0xA8CB_DAD1_5322_6588));
}

#[test]
fn names_are_said_where_a_server_lists_them() {
    for (id, name) in [
        (0x3400_D008, "SQL_Latin1_General_CP1_CI_AS"),
        (0x3500_D008, "SQL_Latin1_General_Pref_CP1_CI_AS"),
        (0x1E00_0808, "SQL_Latin1_General_CP437_BIN2"),
        (0x1F00_C008, "SQL_Latin1_General_CP437_CS_AS"),
        (0x0000_D008, "Latin1_General_CI_AS"),
        (0x0000_D00B, "French_CI_AS"),
        (0x0000_D028, "Modern_Spanish_CI_AS"),
        (0x0000_D01A, "Turkish_CI_AS"),
        (0x0000_D020, "Vietnamese_CI_AS"),
        (0x0004_D008, "Latin1_General_100_CI_AS"),
        (0x0004_0008, "Latin1_General_100_CS_AS_KS_WS"),
        (0x0002_D031, "Chinese_PRC_90_CI_AS"),
        (0x0004_D108, "Latin1_General_100_CI_AS_SC"),
        (0x0004_D188, "Latin1_General_100_CI_AS_SC_UTF8"),
        (0x0004_0888, "Latin1_General_100_BIN2_UTF8"),
        (0x0006_D348, "Japanese_XJIS_140_CI_AS"),
        (0x0006_D1C8, "Japanese_XJIS_140_CI_AS_VSS_UTF8"),
        (0x0007_0048, "Japanese_XJIS_140_BIN"),
        (0x0008_01C3, "Chinese_Simplified_Pinyin_160_CS_AS_KS_WS_SC_UTF8"),
    ] {
        assert_eq!(CollationId(id).name().as_deref(), Some(name), "{id:#x}");
    }
}

#[test]
fn ids_that_no_server_lists_have_no_name() {
    for (id, why) in [
        (0, "no collation"),
        (0x0000_0C08, "an unknown bit, met in XML node tables"),
        (0x0000_DC08, "an unknown bit"),
        (0x0000_D021, "no family"),
        (0x0004_0824, "a generation that Chinese_PRC does not have"),
        (0x0000_D108, "supplementary characters before generation 90"),
        (0x0004_D088, "UTF-8 without supplementary characters"),
        (0x0004_088B, "UTF-8 with another BIN2 than that of Latin1_General_100"),
        (0x0001_0808, "BIN and BIN2"),
        (0x0001_1008, "BIN that ignores case"),
        (0x0006_D048, "generation 140 without supplementary characters"),
        (0x0008_D143, "generation 160 without UTF-8"),
        (0x000A_D008, "no generation"),
        (0x3400_C008, "a sort id with the flags of another"),
        (0x0010_D008, "a bit above the generation"),
    ] {
        assert_eq!(CollationId(id).name(), None, "{id:#x}: {why}");
    }
}
