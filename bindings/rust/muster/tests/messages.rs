// SPDX-License-Identifier: MIT
//! Dealers and routers between threads.
use muster::{Context, ContextConfig, Message, Socket, SocketConfig, SocketEvent, Status};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn context() -> Context {
    let secret = Some(b"a secret of the tests of messages".to_vec());
    Context::with(&ContextConfig { secret, ..ContextConfig::default() }).unwrap()
}
fn at(address: u64) -> SocketConfig {
    SocketConfig { address, ..SocketConfig::default() }
}

#[test]
fn a_dealer_and_a_router_exchange_messages() {
    let context = context();
    let router = Socket::router(&context, &at(1)).unwrap();
    let place = router.bind("tcp://127.0.0.1:0").unwrap();
    let dealer = Socket::dealer(&context, &SocketConfig { loans: true, ..at(2) }).unwrap();
    dealer.connect(&place).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                router.send(router.receive(SOON).unwrap().answer(), SOON).unwrap();
            }
        });
        let large = vec![7u8; 300_000];
        for frames in [vec![], vec![&b""[..]], vec![b"one", &large, b"three"]] {
            let request = frames.iter().fold(Message::new(300).target(9, -3), |message, frame| message.frame(frame));
            dealer.send(request, SOON).unwrap();
            let answer = dealer.receive(SOON).unwrap();
            assert_eq!((answer.kind(), answer.source(), answer.about()), (300, 1, (9, -3)));
            assert_eq!(answer.frames().collect::<Vec<_>>(), frames);
            assert_eq!(answer.get(frames.len()), None);
        }
    });
    assert_eq!(dealer.next_event(SOON).unwrap(), SocketEvent::Connected(1));
    let mut message = Message::new(301);
    dealer.loan(&mut message, 100_000).unwrap().unwrap().fill(5);
    let copy = message.clone();
    dealer.send(message, SOON).unwrap();
    let got = router.receive(SOON).unwrap();
    assert!(got.len() == 1 && got.get(0).unwrap() == [5; 100_000] && copy.get(0) == got.get(0));
    assert_eq!(router.loan(&mut Message::new(1), 1).unwrap_err().status(), Status::UNSUPPORTED);
    dealer.close(SOON).unwrap();
    assert_eq!(router.next_event(SOON).unwrap(), SocketEvent::Connected(2));
    assert!(matches!(router.next_event(SOON).unwrap(), SocketEvent::Lost(2, 0, _)));
    let unsent = router.send(Message::new(300).to(2).frame(b"x"), SOON).unwrap_err();
    assert_eq!(unsent.error.status(), Status::PEER);
    assert_eq!(unsent.message.get(0).unwrap(), b"x");
}

#[test]
fn waits_end() {
    let context = context();
    let router = Socket::router(&context, &SocketConfig { max_unrouted_messages: 1, ..at(1) }).unwrap();
    assert_eq!(router.receive(NOW).unwrap_err().status(), Status::AGAIN);
    assert_eq!(router.wait_peers(1, Some(Duration::from_millis(1))).unwrap_err().status(), Status::TIMEOUT);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| router.receive(None).unwrap_err().status());
        while !waiting.is_finished() {
            router.cancel(); // before it has begun to wait this has no effect
            thread::yield_now();
        }
        assert_eq!(waiting.join().unwrap(), Status::CANCELED);
    });
    router.send(Message::new(300).to(99), NOW).unwrap();
    let full = router.send(Message::new(300).to(98), NOW).unwrap_err();
    assert_eq!(full.error.status(), Status::NOT_FOUND);
    assert_eq!(router.close(Some(Duration::from_millis(1))).unwrap_err().status(), Status::PEER);
    assert_eq!(
        Socket::dealer(&context, &SocketConfig { max_peers: 1 << 21, ..at(1) }).err().unwrap().status(),
        Status::ARG
    );
}
