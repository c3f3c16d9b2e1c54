//! Turning a panic into a verdict.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::Verdict;

thread_local! {
    /// `Some` while a case runs on this thread: where the hook puts what it would have printed.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one case; a panic in it becomes an error that says where.
pub(crate) fn case(run: &mut dyn FnMut(&[u8]) -> Verdict, input: &[u8]) -> Verdict {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let quiet = CAUGHT.with_borrow_mut(|caught| {
                caught.as_mut().map(|text| *text = info.to_string().replace('\n', " ")).is_some()
            });
            if !quiet {
                print(info);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    // A runner whose case panicked is thrown away by the caller, so nobody sees what it left half done.
    let result = panic::catch_unwind(AssertUnwindSafe(|| run(input)));
    let caught = CAUGHT.take().unwrap_or_default();
    result.unwrap_or(Err(caught))
}
