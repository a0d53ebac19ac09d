// SPDX-License-Identifier: MIT
//! Stores and rendezvous: threads of one process, by a server of their own.
use muster::{Context, Event, Op, Queue, Rendezvous, RendezvousConfig, RendezvousEvent, Status, Store, StoreServer};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

fn served(context: &Context) -> (StoreServer, Store) {
    let server = StoreServer::open(context, "tcp://127.0.0.1:0", None).unwrap();
    let store = Store::open(context, &server.address().unwrap(), SOON).unwrap();
    (server, store)
}

#[test]
fn values_are_shared() {
    let context = Context::new().unwrap();
    let (server, store) = served(&context);
    assert_eq!(store.try_get("a", SOON).unwrap(), None);
    store.set("a", [0, 1, 2], SOON).unwrap();
    let other = Store::open(&context, &server.address().unwrap(), SOON).unwrap();
    assert_eq!(other.get("a", SOON).unwrap(), [0, 1, 2]);
    assert_eq!(other.add("n", 5, SOON).unwrap(), 5);
    assert_eq!(store.add("n", -7, SOON).unwrap(), -2);
    assert!(!store.compare_set("a", None, "x", SOON).unwrap());
    assert!(!store.compare_set("a", Some(b"wrong"), "x", SOON).unwrap());
    assert!(store.compare_set("a", Some(&[0, 1, 2]), "x", SOON).unwrap());
    assert!(store.compare_set("b", None, "", SOON).unwrap());
    assert_eq!(store.try_get("b", SOON).unwrap(), Some(Vec::new()));
    assert!(store.delete("b", SOON).unwrap());
    assert!(!store.delete("b", SOON).unwrap());
    let wrong = store.add("a", 1, SOON).unwrap_err();
    assert_eq!(wrong.status(), Status::ARG, "{}", wrong);
}

#[test]
fn operations_are_done_together_or_not_at_all() {
    let context = Context::new().unwrap();
    let store = Store::open(&context, "memory:", SOON).unwrap();
    let view = store.view("part/").unwrap();
    let answer = view.apply(&[Op::set("x", "1"), Op::add("y", 2), Op::push("q", "first")], SOON).unwrap();
    assert!(answer.done);
    assert_eq!(answer.found[1].number, 2);
    let answer = view.apply(&[Op::set("x", "2").if_value("1"), Op::set("z", "3").if_present()], SOON).unwrap();
    assert!(!answer.done);
    assert!(answer.found[1].failed && !answer.found[0].failed);
    assert_eq!(view.get("x", SOON).unwrap(), b"1");
    let found = view.apply(&[Op::try_pop("q"), Op::try_pop("q"), Op::length("q")], SOON).unwrap().found;
    assert_eq!((found[0].present, &found[0].value[..]), (true, &b"first"[..]));
    assert!(!found[1].present);
    for i in 0..2500 {
        store.set(format!("many/{:04}", i), i.to_string(), SOON).unwrap();
    }
    let all = store.list("many/", SOON).unwrap(); // by pages
    assert_eq!(all.len(), 2500);
    assert_eq!(all[2499], (b"many/2499".to_vec(), b"2499".to_vec()));
    assert_eq!(store.list("part/", SOON).unwrap().len(), 2);
}

#[test]
fn requests_wait_in_a_queue() {
    let context = Context::new().unwrap();
    let (_server, store) = served(&context);
    let queue = Queue::new(&context).unwrap();
    store.begin(&[Op::get("late")], None, &queue, 7).unwrap();
    let endless = store.begin(&[Op::pop("nothing")], None, &queue, 8).unwrap();
    store.begin(&[Op::set("late", "no").if_present()], None, &queue, 9).unwrap();
    match queue.next(SOON).unwrap() {
        Some(Event::Store { tag: 9, result: Ok(answer) }) => assert!(!answer.done),
        _ => panic!("a condition does not hold"),
    }
    store.set("late", "there", SOON).unwrap();
    match queue.next(SOON).unwrap() {
        Some(Event::Store { tag: 7, result: Ok(answer) }) => assert_eq!(answer.found[0].value, b"there"),
        _ => panic!("the key is there"),
    }
    store.cancel(endless).unwrap();
    match queue.next(SOON).unwrap() {
        Some(Event::Store { tag: 8, result: Err(why) }) => assert_eq!(why.status(), Status::CANCELED),
        _ => panic!("it was cancelled"),
    }
}

#[test]
fn a_key_goes_with_its_lease() {
    let context = Context::new().unwrap();
    let (_server, store) = served(&context);
    let lease = store.lease(Duration::from_secs(10), true, SOON).unwrap();
    let revision = store.apply(&[Op::set("mine", "1").under(&lease)], SOON).unwrap().revision;
    lease.end(SOON).unwrap();
    let changes = store.apply(&[Op::watch("mine", revision)], SOON).unwrap();
    assert_eq!((changes.found[0].present, &changes.found[0].key[..]), (false, &b"mine"[..]));
    let in_vain = store.barrier("all", 1, 3, Some(Duration::from_millis(50))).unwrap_err();
    assert_eq!(in_vain.status(), Status::TIMEOUT);
    assert!(in_vain.message().contains('0') && in_vain.message().contains('2'), "{}", in_vain);
}

#[test]
fn members_meet_and_are_told_of_a_death() {
    let context = Context::new().unwrap();
    let (server, _) = served(&context);
    let url = server.address().unwrap();
    let open = |address: &str| {
        let config = RendezvousConfig {
            run_id: "job".into(),
            url: Some(url.clone()),
            address: address.into(),
            min: 3,
            last_call: Some(Duration::ZERO),
            ..RendezvousConfig::default()
        };
        Rendezvous::open(&context, &config, SOON).unwrap()
    };
    let members: Vec<_> = ["node-9", "node-10", "node-11"].into_iter().map(open).collect();
    let rounds: Vec<_> = thread::scope(|scope| {
        let joining: Vec<_> = members.iter().map(|member| scope.spawn(|| member.join(SOON).unwrap())).collect();
        joining.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (rank, round) in rounds.iter().enumerate() {
        assert_eq!((round.number(), round.rank(), round.world()), (1, rank as u32, 3));
        assert_eq!(round.digest(), rounds[0].digest());
        assert_eq!(round.member(2, SOON).unwrap(), b"node-11");
    }
    let store = rounds[0].store().unwrap();
    store.set("key", "value", SOON).unwrap();
    assert_eq!(rounds[1].store().unwrap().get("key", SOON).unwrap(), b"value");
    let mut members = members;
    drop(members.pop()); // without a word
    for member in &members {
        loop {
            match member.next_event(SOON).unwrap().expect("a death") {
                RendezvousEvent::Dead(rank, count, _) => {
                    assert_eq!((rank, count), (Some(2), 1));
                    break;
                }
                RendezvousEvent::Closed(why) | RendezvousEvent::Lost(why) => panic!("{}", why),
                _ => {}
            }
        }
    }
    members[0].abort("one is dead", SOON).unwrap();
    assert_eq!(members[1].exit(SOON).unwrap_err().status(), Status::STALE);
    assert!(rounds[1].is_over());
    members[1].close("enough", SOON).unwrap();
    let why = members[0].join(SOON).err().unwrap();
    assert_eq!(why.status(), Status::CLOSED);
    assert!(why.message().contains("enough"), "{}", why);
    for member in &members {
        member.leave(SOON).unwrap();
    }
}
