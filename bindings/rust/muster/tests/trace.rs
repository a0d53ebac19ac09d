// SPDX-License-Identifier: MIT
//! Traces: spans, marks, states and files. Nothing else of the library runs here: the trace is of the process.
use muster::{trace, Status};

#[test]
fn spans_and_marks_are_in_the_file() {
    let path = std::env::temp_dir().join(format!("muster-trace-{}.pftrace", std::process::id()));
    assert!(!trace::state().is_on);
    trace::start(&trace::Config { name: Some("rust"), events: 256 }).unwrap();
    assert_eq!(trace::start(&trace::Config::default()).unwrap_err().status(), Status::EXISTS);
    {
        let _outer = trace::span("outer");
        let _inner = trace::span("inner of it");
        trace::mark("now");
        trace::flow("passed on", trace::flow_of("order 17"));
    }
    let state = trace::state();
    assert_eq!((state.is_on, state.events, state.threads), (true, 6, 1));
    assert_eq!((state.offset_ns, state.offset_error_ns), (0, None));
    trace::save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for name in ["outer", "inner of it", "now", "passed on", "rust"] {
        assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()), "{}", name);
    }
    std::fs::remove_file(&path).unwrap();
    let refused = trace::save("/no/such/folder").unwrap_err();
    assert!(refused.to_string().contains("/no/such/folder"), "{}", refused);
    trace::stop();
    assert!(!trace::state().is_on);
}

#[test]
fn the_number_of_a_flow_is_that_of_fnv_1a() {
    assert_eq!(trace::flow_of(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(trace::flow_of("foobar"), 0x8594_4171_f739_67e8);
}
