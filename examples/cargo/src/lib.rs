//! A limit with a bug: `peak` changes what it reports.
use std::sync::atomic::{AtomicU64, Ordering};

static LIMIT: AtomicU64 = AtomicU64::new(10);

#[inline(never)]
pub fn set_limit(value: u64) {
    LIMIT.store(value, Ordering::Relaxed);
}

#[inline(never)]
pub fn peak() -> u64 {
    LIMIT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn peak_is_the_limit() {
    set_limit(20);
    assert_eq!(peak(), 20);
}
