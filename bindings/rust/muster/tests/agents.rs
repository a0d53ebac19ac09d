// SPDX-License-Identifier: MIT
//! Agents: workers, failures, restarts, stops; two agents that make one world.
use muster::{
    Agent, AgentConfig, AgentStep, Context, ContextConfig, Event, Exit, Outputs, Phase, Queue, RendezvousConfig,
    Status, Store,
};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(30));

fn context() -> Context {
    let secret = Some(b"a secret of the tests of agents".to_vec());
    Context::with(&ContextConfig { secret, ..ContextConfig::default() }).unwrap()
}
fn shell(script: &str) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), script.into()]
}
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("muster-{}-{}", name, std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_failed_worker_is_started_again() {
    let context = context();
    let queue = Queue::new(&context).unwrap();
    let config = AgentConfig {
        argv: shell(r#"[ "$RANK" != 1 ] || [ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 7"#),
        workers: 2,
        max_restarts: 1,
        ..AgentConfig::default()
    };
    let agent = Agent::start(&context, &config, &queue, 5).unwrap();
    agent.wait(SOON).unwrap();
    let state = agent.state().unwrap();
    assert_eq!((state.phase, state.restarts, state.world, state.running), (Phase::Ended, 1, 2, 0));
    let first = agent.first_failure().unwrap();
    assert_eq!((first.rank, first.exit), (1, Some(Exit::Code(7))));
    assert_eq!(agent.worker(1).unwrap().exit, Some(Exit::Code(0)));
    assert_eq!(agent.worker(2).unwrap_err().status(), Status::NOT_FOUND);
    let (mut started, mut restarted) = (0, 0);
    loop {
        match queue.next(SOON).unwrap().unwrap() {
            Event::Agent { tag: 5, step: AgentStep::Started(_) } => started += 1,
            Event::Agent { tag: 5, step: AgentStep::Restarting(1, why) } => {
                assert!(why.contains('7'), "{}", why);
                restarted += 1;
            }
            Event::Agent { .. } => {}
            Event::AgentEnded { tag: 5, result } => break result.unwrap(),
            other => panic!("{:?}", other),
        }
    }
    assert_eq!((started, restarted), (2, 1));
}

#[test]
fn the_error_names_the_worker_that_failed() {
    let (context, folder) = (context(), folder("agent"));
    let queue = Queue::new(&context).unwrap();
    let script = r#"echo out; [ "$RANK" != 2 ] || { echo '{"message": "no bread"}' >"$TORCHELASTIC_ERROR_FILE"; kill -9 $$; }; exec sleep 100"#;
    let config = AgentConfig {
        argv: shell(script),
        workers: 3,
        run_id: Some("rust".into()),
        log_dir: Some(folder.clone()),
        logged: Outputs::BOTH,
        ..AgentConfig::default()
    };
    let agent = Agent::start(&context, &config, &queue, 0).unwrap();
    let failure = agent.wait(SOON).unwrap_err();
    assert_eq!((failure.status(), failure.rank()), (Status::ABORTED, Some(2)));
    let first = agent.first_failure().unwrap();
    assert_eq!((first.local_rank, first.exit, first.message.as_str()), (2, Some(Exit::Signal(9)), "no bread"));
    assert_eq!(agent.failure_text().unwrap(), "no bread");
    drop(agent);
    std::fs::remove_dir_all(folder).unwrap();
    let nothing = AgentConfig { argv: vec!["/no/such/program".into()], ..AgentConfig::default() };
    assert_eq!(
        Agent::start(&context, &nothing, &queue, 0).unwrap().wait(SOON).unwrap_err().status(),
        Status::NOT_FOUND
    );
    let wrong = AgentConfig { argv: shell("true"), workers: 5000, ..AgentConfig::default() };
    assert_eq!(Agent::start(&context, &wrong, &queue, 0).unwrap_err().status(), Status::ARG);
}

#[test]
fn two_agents_are_one_world_until_one_is_stopped() {
    let (context, folder) = (context(), folder("world"));
    let store = Store::open(&context, "memory:", SOON).unwrap();
    let queue = Queue::new(&context).unwrap();
    let config = |address: &str| AgentConfig {
        argv: shell(&format!("echo $RANK of $WORLD_SIZE >{}/$RANK; exec sleep 100", folder.display())),
        workers: 2,
        grace: Some(Duration::from_secs(5)),
        rendezvous: Some(RendezvousConfig {
            run_id: "job".into(),
            store: Some(store.clone()),
            address: address.as_bytes().to_vec(),
            min: 2,
            ..RendezvousConfig::default()
        }),
        ..AgentConfig::default()
    };
    let agents: Vec<_> =
        ["a", "b"].iter().map(|name| Agent::start(&context, &config(name), &queue, 1).unwrap()).collect();
    let begun = std::time::Instant::now();
    for rank in 0..4 {
        while std::fs::read_to_string(folder.join(rank.to_string())).unwrap_or_default() != format!("{} of 4\n", rank) {
            assert!(begun.elapsed() < Duration::from_secs(30), "rank {} has not started", rank);
            std::thread::yield_now();
        }
    }
    for agent in &agents {
        // A worker may be faster than its agent, which still starts the next one.
        let mut state = agent.state().unwrap();
        while state.phase == Phase::Starting && begun.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
            state = agent.state().unwrap();
        }
        assert_eq!((state.phase, state.nodes, state.world, state.running), (Phase::Running, 2, 4, 2));
    }
    for agent in &agents {
        agent.stop(0, Some(Duration::from_secs(2))).unwrap();
    }
    for agent in &agents {
        assert_eq!(agent.wait(SOON).unwrap_err().status(), Status::CANCELED);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
