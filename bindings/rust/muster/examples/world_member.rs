// SPDX-License-Identifier: MIT
//! A member of examples/world.
use muster::{Context, Group, GroupConfig, Reduce, Rendezvous, RendezvousConfig, Store};
use std::time::Duration;

const OWN: f64 = 4.0; // each member adds another power of two, so the sum shows which members take part
const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

fn add(group: &Group, expected: f64) -> muster::Result<()> {
    let mut numbers = [OWN; 1000];
    group.all_reduce(Reduce::Sum, &mut numbers, MINUTE)?;
    assert!(numbers.iter().all(|number| *number == expected), "wrong");
    Ok(())
}

fn sum_together(group: &Group, number: u64) -> muster::Result<()> {
    let mut members = [OWN];
    group.all_reduce(Reduce::Sum, &mut members, MINUTE)?;
    add(group, members[0])?;
    println!("{} members in round {number}, the sum is right", group.size());
    let mut count = 1;
    while group.size() == 5 || count < 20 {
        add(group, members[0])?; // with five, until one of them dies
        count += 1;
    }
    group.close(MINUTE)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("no address")?;
    let context = Context::new()?;
    let store = Store::open(&context, &url, MINUTE)?;
    let _metrics =
        muster::metrics::Publication::begin(&context, &store, Some("rust"), Some(Duration::from_millis(500)))?;
    let config = RendezvousConfig {
        run_id: "world".into(),
        url: Some(url),
        min: 4,
        max: 5,
        last_call: Some(Duration::from_secs(2)),
        ..RendezvousConfig::default()
    };
    let meeting = GroupConfig { listen: "tcp://127.0.0.1:0".into(), ..GroupConfig::default() };
    let run = Rendezvous::open(&context, &config, MINUTE)?;
    println!("ready {}", std::process::id());
    store.get("start", None)?;
    loop {
        let round = run.join(MINUTE)?;
        let group = Group::of_round(&context, &round, &meeting, MINUTE)?;
        match sum_together(&group, round.number()) {
            Err(problem) => println!("{problem}"),
            Ok(()) => break,
        }
    }
    run.exit(MINUTE)?;
    Ok(())
}
