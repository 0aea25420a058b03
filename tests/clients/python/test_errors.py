"""Errors: the right class, with a code and the place at fault."""

import openai
import pytest

from conftest import CLIENT
from helpers import WEATHER

BAD = openai.BadRequestError
MISSING = openai.NotFoundError


@pytest.mark.parametrize(
    ("request_", "kind", "code", "param"),
    [
        (dict(model="gone"), MISSING, "model_not_found", "model"),
        (dict(input=5), BAD, "invalid_type", "input"),
        (dict(input=[{"role": "user", "content": 5}]), BAD, "invalid_type", "input[0].content"),
        (dict(input=[{"type": "nonsense"}]), BAD, "unsupported_item_type", "input[0].type"),
        (
            dict(input=[{"role": "user", "content": [{"type": "nonsense"}]}]),
            BAD,
            None,
            "input[0].content[0].type",
        ),
        (dict(input=[{"type": "item_reference", "id": "msg_x"}]), MISSING, "item_not_found", None),
        (dict(temperature=9), BAD, "decimal_above_max_value", "temperature"),
        (dict(max_output_tokens=1), BAD, "integer_below_min_value", "max_output_tokens"),
        (dict(include=["nonsense"]), BAD, None, "include[0]"),
        (dict(tool_choice={"type": "function", "name": "x"}), BAD, "tool_not_found", "tool_choice"),
        (dict(tools=[WEATHER, WEATHER]), BAD, "duplicate_tool", None),
        (dict(tools=[{"type": "nonsense"}]), BAD, "unsupported_tool", "tools[0].type"),
        (
            dict(tools=[{**WEATHER, "parameters": {"type": "strin"}}]),
            BAD,
            "invalid_function_parameters",
            None,
        ),
        (dict(metadata={"a": "b" * 513}), BAD, "string_above_max_length", None),
    ],
)
def test_a_bad_request_names_what_is_at_fault(client, request_, kind, code, param):
    with pytest.raises(kind) as caught:
        client.responses.create(**{"model": "offline", "input": "hi", **request_})
    error = caught.value
    assert error.code and error.message and error.type
    assert code in (None, error.code)
    assert param is None or error.param == param
    assert error.request_id


@pytest.mark.parametrize(
    ("status", "given", "kind", "code"),
    [
        (429, "rate_limit_exceeded", openai.RateLimitError, "rate_limit_exceeded"),
        (429, "insufficient_quota", openai.RateLimitError, "insufficient_quota"),
        (500, None, openai.InternalServerError, "model_error"),
        (400, "context_length_exceeded", openai.BadRequestError, "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_failure_of_the_model_has_its_own_class(client, backend, stream, status, given, kind, code):
    backend.fail(status, "no luck today", code=given, headers={"retry-after": "3"})
    with pytest.raises(kind) as caught:
        client.responses.create(model="double", input="hi", stream=stream)
    assert caught.value.code == code
    if status == 429 and given == "rate_limit_exceeded":
        assert caught.value.response.headers["retry-after"] == "3"


def test_a_model_that_nobody_serves_is_told_as_such(client):
    with pytest.raises(openai.InternalServerError) as caught:
        client.responses.create(model="nobody", input="hi")
    assert (caught.value.status_code, caught.value.code) == (502, "backend_unreachable")
    assert caught.value.type == "model_error"


def test_the_sdk_tries_again_by_itself(served, backend):
    backend.fail(429, "slow down", code="rate_limit_exceeded", headers={"retry-after": "0"})
    backend.say("now")
    with openai.OpenAI(base_url=served.base_url, **{**CLIENT, "max_retries": 1}) as client:
        response = client.responses.create(model="double", input="hi")
    assert response.output_text == "now"
    assert len(backend.requests) == 2


def test_a_key_is_asked_for_where_one_is_set(serve):
    server = serve('api_key_env = "DOOR"', {"DOOR": "sesame"})
    with openai.OpenAI(base_url=server.base_url, **{**CLIENT, "api_key": "sesame"}) as client:
        created = client.responses.create(model="offline", input="hi")
        assert created.status == "completed"
        with client.responses.connect() as connection:
            connection.response.create(model="gone", input="hi")
            assert connection.recv().error.code == "model_not_found"
    with openai.OpenAI(base_url=server.base_url, **{**CLIENT, "api_key": "wrong"}) as client:
        for attempt in (
            lambda: client.responses.create(model="offline", input="hi"),
            lambda: client.responses.create(model="offline", input="hi", stream=True),
            lambda: client.responses.retrieve(created.id),
            lambda: client.models.list(),
        ):
            with pytest.raises(openai.AuthenticationError) as caught:
                attempt()
            assert caught.value.code == "invalid_api_key"
            assert "sesame" not in str(caught.value)
        with pytest.raises(Exception) as caught:
            client.responses.connect().enter()
        assert "401" in str(caught.value)


def test_a_path_that_is_not_there_is_a_json_error(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="offline", input="hi")
    assert caught.value.code == "route_not_found"


def test_unknown_fields_are_no_error(client):
    response = client.responses.create(
        model="offline", input="hi", extra_body={"no_such_field": {"a": 1}}
    )
    assert response.status == "completed"
