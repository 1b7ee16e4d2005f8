//! Binary search that starts where the last search ended. It needs only a few steps for keys that are looked up in
//! nearly ascending order.

/// Counts the leading elements of `sorted` for which `is_before` returns true, like
/// [`partition_point`](slice::partition_point). Searches from index `near` in growing steps.
pub(crate) fn partition_point_near<T>(sorted: &[T], near: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let is_before_at = |at: usize| sorted.get(at).is_some_and(&is_before);
    let within = |from: usize, to: usize| from + sorted.get(from..to).unwrap_or_default().partition_point(&is_before);
    let near = near.min(sorted.len());
    let mut step = 1;
    if is_before_at(near) {
        let mut from = near + 1;
        while is_before_at(from + step) {
            from += step + 1;
            step *= 2;
        }
        return within(from, sorted.len().min(from + step));
    }
    let mut to = near;
    while to > 0 {
        let from = to.saturating_sub(step);
        if is_before_at(from) {
            return within(from + 1, to);
        }
        to = from;
        step *= 2;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_that_of_a_plain_binary_search_wherever_the_search_begins() {
        for length in 0..40_u32 {
            let sorted: Vec<u32> = (0..length).map(|at| at / 3 * 2).collect();
            for wanted in 0..30 {
                let plain = sorted.partition_point(|value| *value < wanted);
                for near in 0..50 {
                    let found = partition_point_near(&sorted, near, |value| *value < wanted);
                    assert_eq!(found, plain, "{wanted} in {length} from {near}");
                }
            }
        }
    }
}
