use super::*;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || Workload::new(Spec::default()).unwrap().crash(Stop::WithOpen, Flush::Some(3));
    let (first, again) = (run(), run());
    assert!(first.files == again.files && first.log == again.log);
    assert!(first.truth.files == again.truth.files && first.truth.records > 500, "{}", first.truth.records);
}
