// SPDX-License-Identifier: MIT
//! Active messages: handlers of the library's thread and of a queue, failures, limits, and the end of a peer.
use muster::{Context, Endpoint, EndpointConfig, Event, Queue, Status, Stream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(30));

fn two(context: &Context) -> (Endpoint, Endpoint, Stream, Stream) {
    let config = EndpointConfig { max_bytes: 4096, max_requests: 16, ..EndpointConfig::default() };
    let (near, far) = Stream::pair(context).unwrap();
    (Endpoint::new(context, &config).unwrap(), Endpoint::new(context, &config).unwrap(), near, far)
}

#[test]
fn the_library_executes_requests() {
    let context = Context::new().unwrap();
    let (here, there, near, far) = two(&context);
    let sum = Arc::new(AtomicU64::new(0));
    let counted = sum.clone();
    there
        .on(1, move |_, request, reply| {
            let now = counted.fetch_add(request.len() as u64, Ordering::Relaxed) + request.len() as u64;
            reply[..8].copy_from_slice(&now.to_le_bytes());
            Ok(8)
        })
        .unwrap();
    there.on(2, |_, _, _| Err(Status::NOT_FOUND)).unwrap();
    there.on(3, |_, _, _| panic!("a handler panics")).unwrap();
    there.on(4, |_, _, reply| Ok(reply.len() + 1)).unwrap();
    there.on(5, |_, _, reply| Ok(reply.len())).unwrap();
    assert_eq!(there.on(5, |_, _, _| Ok(0)).unwrap_err().status(), Status::EXISTS);
    assert_eq!(there.on(256, |_, _, _| Ok(0)).unwrap_err().status(), Status::ARG);
    let peer = here.add(near).unwrap();
    there.add(far).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..500).for_each(|_| drop(here.call(peer, 1, b"four", SOON).unwrap())));
        }
    });
    for _ in 0..500 {
        while !here.post(peer, 1, b"four").unwrap() {
            here.flush(Some(peer), SOON).unwrap();
        }
    }
    here.flush(None, SOON).unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), 2000 * 4);
    assert_eq!(here.call(peer, 1, b"", SOON).unwrap(), 8000u64.to_le_bytes());
    assert_eq!(here.call(peer, 2, b"", SOON).unwrap_err().status(), Status::NOT_FOUND);
    assert_eq!(here.call(peer, 3, b"", SOON).unwrap_err().status(), Status::INTERNAL);
    assert_eq!(here.call(peer, 4, b"", SOON).unwrap_err().status(), Status::INTERNAL);
    assert_eq!(here.call(peer, 5, b"", SOON).unwrap().len(), 4096);
    let mut small = [0; 8];
    assert_eq!(here.call_to(peer, 5, b"", &mut small, SOON).unwrap_err().status(), Status::LIMIT);
    assert_eq!(here.call_to(peer, 1, b"", &mut small, SOON).unwrap(), 8);
    assert_eq!(here.call(peer, 9, b"", SOON).unwrap_err().status(), Status::UNSUPPORTED);
    assert_eq!(here.call(peer, 1, &[0; 4097], SOON).unwrap_err().status(), Status::ARG);
    assert_eq!(here.call(peer + 1, 1, b"", SOON).unwrap_err().status(), Status::ARG);
    let state = here.peer(peer).unwrap();
    assert!(state.ended.is_none() && state.requests == 0 && state.sent >= 2000, "{:?}", state);
    there.disconnect(0, "enough").unwrap();
    let why = here.call(peer, 1, b"", SOON).unwrap_err();
    assert!(why.message().contains("enough"), "{}", why);
    assert!(here.peer(peer).unwrap().ended.is_some());
}

#[test]
fn a_queue_gets_requests() {
    let context = Context::new().unwrap();
    let (here, there, near, far) = two(&context);
    let queue = Queue::new(&context).unwrap();
    there.serve(1, &queue, 7).unwrap();
    let peer = here.add(near).unwrap();
    there.add(far).unwrap();
    let asking = std::thread::spawn(move || {
        let replies =
            [here.call(peer, 1, b"one", SOON), here.call(peer, 1, b"two", SOON), here.call(peer, 1, b"", SOON)];
        (here, replies)
    });
    for round in 0..3 {
        let request = match queue.next(SOON).unwrap().unwrap() {
            Event::Request { tag: 7, request } => request,
            other => panic!("{:?}", other),
        };
        assert_eq!((request.handler(), request.peer()), (1, 0));
        match round {
            0 => {
                assert_eq!(request.data(), b"one");
                let reply = request.data().repeat(2);
                request.reply(&reply).unwrap();
            }
            1 => request.fail(Status::BUSY).unwrap(),
            _ => drop(request),
        }
    }
    let (here, replies) = asking.join().unwrap();
    assert_eq!(replies[0].as_ref().unwrap(), b"oneone");
    assert_eq!(replies[1].as_ref().unwrap_err().status(), Status::BUSY);
    assert_eq!(replies[2].as_ref().unwrap_err().status(), Status::CANCELED);
    there.close().unwrap();
    assert!(here.call(peer, 1, b"", SOON).is_err());
}
