use super::*;

fn entry(name: &str, failover: &[&str]) -> ModelConfig {
    let mut config = ModelConfig::new(name, Adapter::Offline);
    config.failover = failover.iter().map(|it| (*it).to_owned()).collect();
    config
}

/// Who is in which pool, or what is wrong.
fn orders(entries: &[ModelConfig]) -> Result<Vec<Vec<String>>, String> {
    let names = |pool: &Pool| {
        let members = pool.members().iter();
        members.map(|member| member.name().to_string()).collect()
    };
    pools(entries, &|_| None, &Http::default())
        .map(|pools| pools.iter().map(names).collect())
        .map_err(|error| error.to_string())
}

#[test]
fn those_who_stand_in_follow_in_order_and_bring_theirs() {
    let mut second = entry("b", &["c"]);
    second.aliases = vec!["bee".into()];
    let entries = [
        entry("a", &["bee", "d", "c"]),
        second,
        entry("c", &[]),
        entry("d", &["c"]),
    ];
    assert_eq!(
        orders(&entries).unwrap(),
        [
            vec!["a", "b", "c", "d"],
            vec!["b", "c"],
            vec!["c"],
            vec!["d", "c"]
        ]
    );
}

#[test]
fn a_backend_has_one_breaker_wherever_it_is() {
    let entries = [entry("a", &["b"]), entry("b", &[])];
    let pools = pools(&entries, &|_| None, &Http::default()).unwrap();
    assert!(Arc::ptr_eq(&pools[0].members()[1], &pools[1].members()[0]));
}

#[test]
fn circles_and_strangers_are_refused() {
    for (entries, words) in [
        (
            vec![entry("a", &["b"]), entry("b", &["c"]), entry("c", &["a"])],
            "model `c`: `failover`: they stand in for each other: `a`, then `b`, then `c`, then `a`",
        ),
        (
            vec![entry("a", &["b"]), entry("b", &["b"])],
            "model `b`: `failover`: a model cannot stand in for itself",
        ),
        (
            vec![entry("a", &["z"])],
            "model `a`: `failover`: there is no model `z`",
        ),
    ] {
        assert_eq!(orders(&entries).unwrap_err(), words);
    }
}

#[test]
fn only_what_is_reached_over_a_network_has_a_breaker_unasked() {
    let mut config = ModelConfig::new("a", Adapter::Ollama);
    assert_eq!(config.breaker(), BreakerSettings::default());
    config.adapter = Adapter::Scripted;
    assert_eq!(config.breaker(), BreakerSettings::off());
    config.breaker = Some(BreakerSettings::default());
    assert_eq!(config.breaker(), BreakerSettings::default());
}
