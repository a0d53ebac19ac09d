// SPDX-License-Identifier: MIT
//! Brokers: a stream through one, its counters, what is refused, and its end.
use muster::{Broker, BrokerConfig, Context, ContextConfig, Listener, Status, Stream};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const SOON: Option<Duration> = Some(Duration::from_secs(30));

fn context(secret: &[u8]) -> Context {
    Context::with(&ContextConfig { secret: Some(secret.to_vec()), ..ContextConfig::default() }).unwrap()
}

#[test]
fn members_reach_each_other_through_a_broker() {
    let secret: &[u8] = b"a secret of the tests of brokers";
    let (here, there, own) = (context(secret), context(secret), context(secret));
    let config = BrokerConfig { broker_secret: Some(b"what only brokers know".to_vec()), ..BrokerConfig::default() };
    let broker = match Broker::open(&own, "zmq://127.0.0.1:0/", &config) {
        Err(why) if why.status() == Status::NOT_FOUND || why.status() == Status::PLUGIN => return, // built without zmq
        other => other.unwrap(),
    };
    let at = broker.address().unwrap();
    assert!(at.contains("?broker="), "{}", at);
    let of_there = at.replace("zmq://", "zmq://there@") + "&upgrade=no"; // all bytes take the way through the broker
    let listener = Listener::bind(&there, &of_there).unwrap();
    let mut near = Stream::dial(&here, &of_there, SOON).unwrap();
    let mut far = listener.accept(SOON).unwrap();
    near.write_all(b"through the broker").unwrap();
    let mut text = [0; 18];
    far.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"through the broker");
    let begun = Instant::now();
    loop {
        let stats = broker.stats().unwrap(); // the broker's thread copies them from time to time
        if stats.members == 2 && stats.messages > 0 && stats.bytes >= 18 && !stats.has_parent {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", stats);
        std::thread::yield_now();
    }

    let other_job = context(b"the secret of another job");
    assert!(Stream::dial(&other_job, &of_there, Some(Duration::from_secs(5))).is_err());
    broker.close(Some(Duration::from_secs(5))).unwrap();
    assert!(far.read(&mut text).is_err());
    assert_eq!(Broker::open(&own, "tcp://127.0.0.1:0", &config).unwrap_err().status(), Status::UNSUPPORTED);
    let both = BrokerConfig { window_bytes: 1, ..BrokerConfig::default() };
    assert_eq!(Broker::open(&own, "zmq://127.0.0.1:0/", &both).unwrap_err().status(), Status::ARG);
}
