// SPDX-License-Identifier: MIT
//! A worker for a master in any language: echoes streams labelled `echo`, and for those labelled `pair:N` asks member N
//! whether it does. It adds up the bytes of a broadcast, and says on streams labelled `heard` how many there were and what
//! they came to. See tests/mixed.
use muster::{Cluster, ClusterEvent, Context, Stream, WorkerConfig};
use std::error::Error;
use std::io::{copy, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(60));

fn echo(stream: &Stream) -> Result<(), Box<dyn Error>> {
    copy(&mut &*stream, &mut &*stream)?;
    Ok(stream.finish()?)
}

fn ask(cluster: &Cluster, member: u32) -> Result<(), Box<dyn Error>> {
    let stream = cluster.dial(member, b"echo", SOON)?;
    let own = cluster.number();
    let pattern: Vec<u8> = (0..1u32 << 20).map(|i| (i.wrapping_mul(31).wrapping_add(own)) as u8).collect();
    let back = thread::scope(|scope| -> Result<Vec<u8>, Box<dyn Error>> {
        let writing = scope.spawn(|| {
            (&stream)
                .write_all(&pattern)
                .map_err(|why| why.to_string())
                .and_then(|()| stream.finish().map_err(|why| why.to_string()))
        });
        let mut back = Vec::new();
        (&stream).read_to_end(&mut back)?;
        writing.join().expect("a thread that does not panic")?;
        Ok(back)
    })?;
    if back == pattern {
        Ok(())
    } else {
        Err("other bytes came back".into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::of_worker()?;
    let config = WorkerConfig { exit_with_master: true, ..WorkerConfig::default() };
    let cluster = Arc::new(Cluster::join(&context, &config, SOON)?);
    let mut heard = "nothing\n".to_string();
    while let Some(event) = cluster.next_event(None)? {
        match event {
            ClusterEvent::Broadcast(_, _, bytes) => {
                let sum = bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(u32::from(byte)));
                heard = format!("{} {}\n", bytes.len(), sum);
            }
            ClusterEvent::Stream(_, label, stream) if label == b"heard" => {
                (&stream).write_all(heard.as_bytes())?;
                stream.finish()?;
                stream.close(SOON)?;
            }
            ClusterEvent::Stream(_, label, stream) => {
                let cluster = cluster.clone();
                thread::spawn(move || {
                    let label = String::from_utf8_lossy(&label).into_owned();
                    let done = match label.strip_prefix("pair:").and_then(|number| number.parse().ok()) {
                        None => return drop(echo(&stream)),
                        Some(member) => ask(&cluster, member),
                    };
                    let line = done.map_or_else(|why| format!("bad: {}\n", why), |()| "ok\n".to_string());
                    let _ = (&stream).write_all(line.as_bytes());
                    let _ = stream.finish();
                    let _ = stream.close(SOON);
                });
            }
            ClusterEvent::Leave => {
                cluster.close(None)?;
                return Ok(());
            }
            ClusterEvent::MasterGone(why) => return Err(why.into()),
            _ => {}
        }
    }
    Ok(())
}
