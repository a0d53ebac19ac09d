// SPDX-License-Identifier: MIT
//! The text of the metrics, and their publication in a store.
use muster::{metrics, Context, ContextConfig, Status, Store, StoreServer};
use std::time::{Duration, Instant};

const SOON: Option<Duration> = Some(Duration::from_secs(20));

#[test]
fn a_process_publishes_what_it_counts() {
    let secret = Some(b"a secret of the tests of metrics".to_vec());
    let context = Context::with(&ContextConfig { secret, ..ContextConfig::default() }).unwrap();
    let servers: Vec<_> = (0..12).map(|_| StoreServer::open(&context, "tcp://127.0.0.1:0", None).unwrap()).collect();
    let text = metrics::text(&context).unwrap(); // longer than its first place
    assert!(text.contains("# TYPE muster_store_server_keys gauge\n"), "{}", text);
    assert_eq!(text.matches("\nmuster_store_server_keys{").count(), servers.len());

    let store = Store::open(&context, &servers[0].address().unwrap(), SOON).unwrap();
    let publication =
        metrics::Publication::begin(&context, &store, Some("me"), Some(Duration::from_millis(100))).unwrap();
    let published = store.get("muster/metrics/me", SOON).unwrap();
    assert!(String::from_utf8(published).unwrap().contains("\nmuster_streams "));
    let begun = Instant::now();
    while publication.state().unwrap().published < 3 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
    assert_eq!((publication.state().unwrap().failed, publication.state().unwrap().status), (0, Status::OK));
    drop(publication);
    while store.try_get("muster/metrics/me", SOON).unwrap().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    let refused = metrics::Publication::begin(&context, &store, Some("a/b"), None).unwrap_err();
    assert_eq!(refused.status(), Status::ARG);
}
