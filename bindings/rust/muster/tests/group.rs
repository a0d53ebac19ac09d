// SPDX-License-Identifier: MIT
//! Collective operations of members that are threads, each with a context of its own.
use muster::{Context, ContextConfig, Group, GroupConfig, Progress, Reduce, Status, Store};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

fn config() -> GroupConfig {
    GroupConfig { listen: "tcp://127.0.0.1:0".into(), ..GroupConfig::default() }
}

// Runs `body` at each member; what it returns is closed by all of them.
fn in_group(size: u32, config: &GroupConfig, body: impl Fn(Group) -> Option<Group> + Sync) {
    let secret = Some(b"a secret of the tests of groups".to_vec());
    let serving = Context::with(&ContextConfig { secret: secret.clone(), ..ContextConfig::default() }).unwrap();
    let store = Store::open(&serving, "memory:", SOON).unwrap();
    let opened = Barrier::new(size as usize);
    thread::scope(|scope| {
        for rank in 0..size {
            let (store, body, opened, secret) = (&store, &body, &opened, secret.clone());
            scope.spawn(move || {
                let context = Context::with(&ContextConfig { secret, ..ContextConfig::default() }).unwrap();
                let group = Group::in_store(&context, store, rank, size, config, SOON).unwrap();
                opened.wait(); // a member that is still opening the group would report a failure as one of the opening
                assert_eq!((group.rank(), group.size()), (rank, size));
                if let Some(group) = body(group) {
                    group.close(SOON).unwrap();
                }
            });
        }
    });
}

fn perform_all(group: Group) -> Option<Group> {
    let rank = group.rank();
    group.barrier(SOON).unwrap();
    let mut sums = vec![rank + 1; 5000];
    group.all_reduce(Reduce::Sum, &mut sums, SOON).unwrap();
    assert_eq!(sums, vec![6; 5000]);
    let mut value = [f64::from(rank)];
    group.all_reduce(Reduce::Max, &mut value, SOON).unwrap();
    assert_eq!(value, [2.0]);
    let mut shared = if rank == 1 { [7i16, 8] } else { [0, 0] };
    group.broadcast(&mut shared, 1, SOON).unwrap();
    assert_eq!(shared, [7, 8]);
    let mut at_root = [rank + 1];
    group.reduce(Reduce::Product, &mut at_root, 2, SOON).unwrap();
    assert_eq!(at_root, [if rank == 2 { 6 } else { rank + 1 }]);
    let mut prefix = [1u8];
    group.scan(Reduce::Sum, &mut prefix, SOON).unwrap();
    assert_eq!(prefix, [rank as u8 + 1]);
    assert_eq!(group.reduce_scatter(Reduce::Sum, &[1, 2, 3], SOON).unwrap(), [3 * (rank as i32 + 1)]);
    assert_eq!(group.all_gather(&[rank, 10 * rank], SOON).unwrap(), [0, 0, 1, 10, 2, 20]);
    assert_eq!(group.gather(&[rank], 1, SOON).unwrap(), if rank == 1 { vec![0, 1, 2] } else { vec![] });
    let mut block = [0u64];
    group.scatter(if rank == 0 { &[4, 5, 6] } else { &[] }, &mut block, 0, SOON).unwrap();
    assert_eq!(block, [4 + u64::from(rank)]);
    let mut around = [10 * rank, 10 * rank + 1, 10 * rank + 2];
    group.all_to_all(&mut around, SOON).unwrap();
    assert_eq!(around, [rank, 10 + rank, 20 + rank]);
    assert_eq!(group.all_to_all(&mut [1u32, 2], SOON).unwrap_err().status(), Status::ARG);
    let half = group.split(if rank == 0 { -1 } else { 1 }, -i64::from(rank), SOON).unwrap();
    assert_eq!(half.is_some(), rank != 0);
    if let Some(half) = half {
        assert_eq!((half.rank(), half.size()), (2 - rank, 2));
        half.close(SOON).unwrap();
    }
    assert!(matches!(group.progress(rank).unwrap(), Progress::Idle(_)));
    Some(group)
}

#[test]
fn arrays_are_reduced_and_exchanged() {
    in_group(3, &config(), perform_all);
    in_group(3, &GroupConfig { no_shared_memory: true, ..config() }, perform_all);
}

#[test]
fn a_function_of_the_program_reduces_and_its_panic_goes_on() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Digits {
        value: u64,
        last: u8,
    }
    in_group(3, &config(), |group| {
        let rank = group.rank();
        let joined = |a: Digits, b: Digits| Digits { value: 10 * a.value + b.value, last: b.last }; // does not commute
        let digits = group.add_reduction(joined).unwrap();
        let mut array = vec![Digits { value: u64::from(rank) + 1, last: rank as u8 }; 3000];
        group.all_reduce_with(&digits, &mut array, SOON).unwrap();
        assert_eq!(array, vec![Digits { value: 123, last: 2 }; 3000]);
        let mut prefix = [Digits { value: u64::from(rank) + 1, last: rank as u8 }];
        group.scan_with(&digits, &mut prefix, SOON).unwrap();
        assert_eq!(prefix[0].value, [1, 12, 123][rank as usize]);
        let broken = group.add_reduction(|_: u32, _: u32| -> u32 { panic!("not these") }).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| group.all_reduce_with(&broken, &mut [1], SOON)));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"not these"));
        Some(group)
    });
}

#[test]
fn messages_go_by_rank() {
    in_group(2, &GroupConfig { messages: true, ..config() }, |group| {
        let other = 1 - group.rank();
        let large = vec![group.rank() as u8; 100_000];
        group.send(other, b"small", SOON).unwrap();
        group.send(other, &large, SOON).unwrap();
        assert_eq!(group.receive(other, SOON).unwrap(), b"small");
        assert_eq!(group.receive(other, SOON).unwrap(), vec![other as u8; 100_000]);
        Some(group)
    });
}

#[test]
fn a_failure_has_the_rank_that_caused_it() {
    in_group(3, &config(), |group| {
        if group.rank() == 2 {
            return None; // dropped without a close
        }
        let why = group.barrier(SOON).unwrap_err();
        assert_eq!((why.status(), why.rank()), (Status::ABORTED, Some(2)));
        assert!(matches!(group.progress(2).unwrap(), Progress::Failed(_)));
        None
    });
    in_group(2, &config(), |group| {
        let why = if group.rank() == 0 { group.barrier(SOON) } else { group.all_reduce(Reduce::Sum, &mut [1], SOON) };
        let why = why.unwrap_err();
        assert_eq!(why.status(), Status::MISMATCH);
        assert!(why.message().contains("rank 0: barrier 2; rank 1: all-reduce 2 of 1 i32 (sum)"), "{}", why.message());
        None
    });
}
