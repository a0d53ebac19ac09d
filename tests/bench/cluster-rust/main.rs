// SPDX-License-Identifier: MIT
//! Functions called in other processes:  cluster_rust --what stream|call|map [--workers N] [--scale PERCENT]
//! stream: half round trips of a bare stream, to which `call`, one call of a function, is compared. map: 100,000 numbers.
use muster::parallel::{is_worker, work, Functions, Options, Team};
use muster::{Cluster, ClusterConfig, ClusterEvent, Context, Launch, WorkerConfig};
use std::error::Error;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error>>;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(55));
const SIZE: usize = 64;

fn option(name: &str, usual: &str) -> String {
    let words: Vec<String> = std::env::args().collect();
    words.windows(2).find(|two| two[0] == name).map_or_else(|| usual.to_string(), |two| two[1].clone())
}

/// Half of the median time, in microseconds.
fn print_half_of_trips(scale: usize, mut once: impl FnMut(u64) -> Outcome) -> Outcome {
    let mut times = Vec::new();
    for i in 0..(200 * scale) as u64 {
        let begun = Instant::now();
        once(i)?;
        times.push(begun.elapsed());
    }
    times.sort();
    println!("us\t{:.6}", times[times.len() / 2].as_secs_f64() * 1e6 / 2.0);
    Ok(())
}

fn send_back() -> Outcome {
    let context = Context::of_worker()?;
    let config = WorkerConfig { exit_with_master: true, ..WorkerConfig::default() };
    let cluster = Cluster::join(&context, &config, PATIENCE)?;
    while let Some(event) = cluster.next_event(None)? {
        match event {
            ClusterEvent::Stream(_, _, mut stream) => {
                let mut message = [0; SIZE];
                while stream.read_exact(&mut message).is_ok() {
                    stream.write_all(&message)?;
                }
            }
            ClusterEvent::Leave => break,
            _ => {}
        }
    }
    cluster.close(None)?;
    Ok(())
}

fn bare_stream(scale: usize) -> Outcome {
    let context = Context::new()?;
    let cluster = Cluster::open(&context, &ClusterConfig::default())?;
    cluster.add(&Launch::local(1, std::env::args()))?;
    loop {
        match cluster.next_event(PATIENCE)? {
            Some(ClusterEvent::Joined(_)) => break,
            Some(ClusterEvent::Failed(_, why)) => return Err(why.into()),
            Some(_) => {}
            None => return Err("no worker has come".into()),
        }
    }
    let mut stream = cluster.dial(1, b"echo", PATIENCE)?;
    let mut message = [1; SIZE];
    print_half_of_trips(scale, |_| {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        Ok(())
    })?;
    stream.finish()?;
    cluster.close(PATIENCE)?;
    Ok(())
}

fn main() -> Outcome {
    let what = option("--what", "call");
    let workers: u32 = option("--workers", "1").parse()?;
    let scale: usize = option("--scale", "100").parse()?;
    let mut functions = Functions::new();
    functions.add("next", |_, x: u64| Ok(x + 1));
    functions.add("square", |_, x: u64| Ok(x * x));
    match (what.as_str(), is_worker()) {
        ("stream", true) => return send_back(),
        ("stream", false) => return bare_stream(scale),
        (_, true) => return work(functions),
        _ => {}
    }
    let context = Context::new()?;
    let team = Team::open(&context, functions, &Options::default())?;
    team.add(workers)?;
    team.wait_for(workers as usize, PATIENCE)?;
    if what == "call" {
        print_half_of_trips(scale, |i| {
            assert_eq!(team.call::<_, u64>(1, "next", &i)?, i + 1);
            Ok(())
        })?;
    } else {
        let numbers: Vec<u64> = (0..1000 * scale as u64).collect();
        team.map::<_, u64>("square", &numbers, 0)?; // makes the streams
        let begun = Instant::now();
        let squares = team.map::<_, u64>("square", &numbers, 0)?;
        println!("rate\t{:.6}", numbers.len() as f64 / begun.elapsed().as_secs_f64());
        assert!(squares.iter().zip(&numbers).all(|(square, x)| *square == x * x));
    }
    team.close()?;
    Ok(())
}
