use super::*;

#[test]
fn a_text_of_either_form_tells_the_same() {
    let metrics = Metrics::new(["default"]);
    let meters = metrics.model("default");
    meters.turns.inc();
    meters.first_token.observe(0.2);
    let open = metrics.text(Form::OpenMetrics);
    assert!(open.contains("# TYPE haft_turns counter\nhaft_turns_total{model=\"default\"} 1\n"));
    assert!(open.contains("# TYPE haft_build info\nhaft_build_info{version="));
    assert!(open.ends_with("# EOF\n"), "{open}");
    let older = metrics.text(Form::Prometheus);
    let turns = "# TYPE haft_turns_total counter\nhaft_turns_total{model=\"default\"} 1\n";
    assert!(older.contains(turns), "{older}");
    assert!(older.contains("# HELP haft_turns_total Answers of models within runs.\n"));
    assert!(older.contains("# TYPE haft_build_info gauge\nhaft_build_info{version="));
    let count = "haft_time_to_first_token_seconds_count{model=\"default\"} 1\n";
    assert!(open.contains(count) && older.contains(count));
    assert!(!older.contains("EOF"));
}

#[test]
fn a_name_that_is_no_model_makes_no_series() {
    let metrics = Metrics::new(["default"]);
    metrics.model("of a client's making").turns.inc();
    let text = metrics.text(Form::Prometheus);
    assert!(!text.contains("making"), "{text}");
    assert!(
        text.contains("haft_turns_total{model=\"other\"} 1"),
        "{text}"
    );
}

#[test]
fn names_follow_the_rules_and_none_stands_twice() {
    let mut seen = std::collections::HashSet::new();
    for metric in described() {
        assert!(seen.insert(metric.name), "{}", metric.name);
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(metric.name.bytes().all(is_plain), "{}", metric.name);
        assert!(!metric.name.ends_with("_total"), "{}", metric.name);
        assert!(
            !metric.help.ends_with('.'),
            "the full stop is added: {}",
            metric.name
        );
    }
}

#[test]
fn the_manual_tells_of_every_metric() {
    const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    const BEGIN: &str = "<!-- begin: metrics -->\n";
    const END: &str = "<!-- end: metrics -->";
    let table = format!("\n{}\n", metrics_table());
    let manual = std::fs::read_to_string(MANUAL).unwrap();
    let (before, rest) = manual.split_once(BEGIN).expect("where it begins");
    let (told, after) = rest.split_once(END).expect("where it ends");
    if told == table {
        return;
    }
    assert!(
        std::env::var_os("HAFT_RENEW").is_some(),
        "`docs/operations.md` does not tell of the metrics that there are: renew it with \
         `HAFT_RENEW=1 cargo test -p haft-server the_manual_tells` and look at the difference"
    );
    std::fs::write(MANUAL, [before, BEGIN, &table, END, after].concat()).unwrap();
}
