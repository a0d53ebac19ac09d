// SPDX-License-Identifier: MIT
//! A cluster of this program: squares 100,000 numbers with four workers, and goes on when one of them is killed.
//!   cargo run --example cluster
use muster::parallel::{is_worker, work, Functions, Options, Team};
use muster::Context;
use std::error::Error;
use std::process::Command;
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut functions = Functions::new();
    functions.add("square", |_, x: u64| {
        thread::sleep(Duration::from_micros(5)); // it takes its time
        Ok(x * x)
    });
    functions.add("greet", |here, name: String| Ok(format!("{}, this is worker {}", name, here.number())));
    functions.add("greet_by", |here, other: u32| {
        here.call::<_, String>(other, "greet", &format!("worker {}", here.number())).map_err(|why| why.to_string())
    });
    if is_worker() {
        return work(functions);
    }

    let context = Context::new()?;
    let team = Team::open(&context, functions, &Options::default())?;
    team.add(4)?;
    team.wait_for(4, Some(Duration::from_secs(30)))?;
    println!("{}", team.call::<_, String>(3, "greet_by", &4u32)?);

    let numbers: Vec<u64> = (0..100_000).collect();
    let victim = team.cluster().member(2)?.pid.to_string();
    let squares: Vec<u64> = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            let _ = Command::new("kill").args(["-KILL", &victim]).status();
        });
        team.map("square", &numbers, 500)
    })?;
    assert!(squares.iter().zip(&numbers).all(|(square, x)| *square == x * x));
    println!("{} squares by workers {:?}, worker 2 was killed", squares.len(), team.workers());
    team.close()?;
    context.close(Some(Duration::from_secs(5)))?;
    Ok(())
}
