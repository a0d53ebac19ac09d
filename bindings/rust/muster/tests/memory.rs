// SPDX-License-Identifier: MIT
//! Global memory of members that are threads, each with a context of its own.
use muster::memory::{Fetch, GlobalMemory, GlobalPointer, MemoryConfig};
use muster::{Context, ContextConfig, Group, GroupConfig, Status, Store};
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

fn in_memory(size: u32, no_shared_memory: bool, body: impl Fn(&GlobalMemory, &Group) + Sync) {
    let secret = Some(b"a secret of the tests of memory".to_vec());
    let serving = Context::with(&ContextConfig { secret: secret.clone(), ..ContextConfig::default() }).unwrap();
    let store = Store::open(&serving, "memory:", SOON).unwrap();
    thread::scope(|scope| {
        for rank in 0..size {
            let (store, body, secret) = (&store, &body, secret.clone());
            scope.spawn(move || {
                let context = Context::with(&ContextConfig { secret, ..ContextConfig::default() }).unwrap();
                let config = GroupConfig { listen: "tcp://127.0.0.1:0".into(), ..GroupConfig::default() };
                let group = Group::in_store(&context, store, rank, size, &config, SOON).unwrap();
                let config = MemoryConfig { segment_bytes: 1 << 20, no_shared_memory, ..MemoryConfig::default() };
                let memory = GlobalMemory::open(&group, &config).unwrap();
                assert_eq!((memory.locale(), memory.locales()), (rank, size));
                body(&memory, &group);
                group.barrier(SOON).unwrap();
                drop(memory);
                group.close(SOON).unwrap();
            });
        }
    });
}

fn perform_all(memory: &GlobalMemory, group: &Group) {
    let offset = memory.symmetric(64, 8).unwrap();
    let following = (memory.locale() + 1) % memory.locales();
    let word = memory.pointer(following, offset).unwrap();
    let sum = memory.pointer(0, offset + 8).unwrap();
    memory.write(word, 10).unwrap();
    assert_eq!(memory.exchange(word, 5).unwrap(), 10);
    assert_eq!(memory.compare_exchange(word, 4, 9).unwrap(), Err(5));
    assert_eq!(memory.compare_exchange(word, 5, 6).unwrap(), Ok(5));
    assert_eq!(memory.read(word).unwrap(), 6);
    assert_eq!(memory.fetch(word, Fetch::UnsignedMax, 100).unwrap(), 6);
    for _ in 0..100 {
        memory.fetch(sum, Fetch::Add, 1).unwrap();
    }
    group.barrier(SOON).unwrap();
    assert_eq!(memory.read(sum).unwrap(), 100 * u64::from(memory.locales()));

    let block = memory.allocate(following, 300_000).unwrap().unwrap();
    let data: Vec<u8> = (0..300_000u32).map(|i| (i + memory.locale()) as u8).collect();
    let signal = memory.pointer(following, offset + 16).unwrap();
    memory.put_with_signal(block, &data, signal, 3).unwrap();
    let mut back = vec![0; data.len()];
    memory.get(block, &mut back).unwrap();
    assert!(back == data);
    assert_eq!(memory.read(signal).unwrap(), 3);
    memory.get(block.offset(1000), &mut back[..10]).unwrap();
    assert_eq!(back[..10], data[1000..1010]);
    assert_eq!(memory.allocate(following, 1 << 30).unwrap_err().status(), Status::LIMIT);
    group.barrier(SOON).unwrap();
    if memory.locale() == 0 {
        let mut all = Vec::new();
        while let Some(one) = memory.allocate(following, 100_000).unwrap() {
            all.push(one);
        }
        assert!(!all.is_empty());
        all.into_iter().for_each(|one| memory.free(one).unwrap());
    }
    assert_eq!(memory.read(GlobalPointer::NIL).unwrap_err().status(), Status::ARG);
    assert!(memory.stats(following).unwrap().used_blocks >= 1);
    assert!(memory.problem(following).unwrap().is_none());

    let token = memory.token().unwrap();
    {
        let _outer = token.pin().unwrap();
        let _inner = token.pin().unwrap();
        assert!(token.retire(block).unwrap());
        assert_eq!(token.reclaim(u32::MAX).unwrap(), 0);
    }
    assert_eq!(token.clear(SOON).unwrap(), 1);
    assert_eq!(memory.free(block).unwrap_err().status(), Status::STALE);
    let own = memory.pointer(memory.locale(), offset + 24).unwrap();
    unsafe { memory.address(own, 1).unwrap().write(65) };
    let mut one = [0];
    memory.get(own, &mut one).unwrap();
    assert_eq!(one, [65]);
}

#[test]
fn words_and_blocks_by_shared_memory() {
    in_memory(2, false, perform_all);
}

#[test]
fn words_and_blocks_by_messages() {
    in_memory(3, true, perform_all);
}
