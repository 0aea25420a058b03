"""Metrics: what Prometheus' own parsers make of them."""

import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def scrape(served, accept):
    address = served.base_url.removesuffix("/v1") + "/metrics"
    request = urllib.request.Request(address, headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["content-type"], answer.read().decode()


def test_both_forms_are_read_and_tell_the_same(served, client):
    client.responses.create(model="offline", input="hi")
    kind, text = scrape(served, OPENMETRICS)
    assert kind.startswith("application/openmetrics-text")
    newer = {family.name: family for family in openmetrics(text)}
    kind, text = scrape(served, "text/plain")
    assert kind.startswith("text/plain; version=0.0.4")
    older = {family.name: family for family in prometheus(text)}
    assert {"haft_requests", "haft_tokens", "haft_time_to_first_token_seconds"} <= set(newer)
    for name, family in newer.items():
        # The older form has no `info`.
        other = older.get(name) or older[f"{name}_info"]
        assert family.type in (other.type, "info"), name
        assert {sample.name for sample in family.samples} == {s.name for s in other.samples}
        assert family.documentation == other.documentation
    runs = {
        (sample.labels["model"], sample.labels["outcome"]): sample.value
        for sample in newer["haft_runs"].samples
    }
    assert runs[("offline", "completed")] >= 1
