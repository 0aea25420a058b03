"""`responses.parse`: answers and arguments as objects of a schema."""

import json

import openai
import pytest
from pydantic import BaseModel, Field

CLIENT = "openai (Python)"


class City(BaseModel):
    name: str
    population: int = Field(description="How many people live there")


class Atlas(BaseModel):
    cities: list[City]
    note: str | None


class GetWeather(BaseModel):
    """The weather in a city"""

    city: str
    days: int


ATLAS = {"cities": [{"name": "Oslo", "population": 717710}], "note": None}


def test_an_answer_is_parsed_into_a_model(client, backend):
    backend.say(json.dumps(ATLAS))
    response = client.responses.parse(model="double", input="Oslo?", text_format=Atlas)
    assert response.output_parsed == Atlas(cities=[City(name="Oslo", population=717710)], note=None)
    assert response.output_text == json.dumps(ATLAS)
    assert response.text.format.type == "json_schema"
    assert response.text.format.name == "Atlas"
    assert response.text.format.strict is True
    assert set(response.text.format.schema_["properties"]) == {"cities", "note"}


@pytest.mark.covers("structured output")
def test_the_schema_reaches_the_model(client, backend):
    backend.say(json.dumps(ATLAS))
    client.responses.parse(model="double", input="Oslo?", text_format=Atlas)
    wanted = backend.requests[0]["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["name"] == "Atlas"
    assert wanted["json_schema"]["strict"] is True
    schema = wanted["json_schema"]["schema"]
    assert schema["required"] == ["cities", "note"]
    assert schema["additionalProperties"] is False


def test_a_streamed_answer_is_parsed_when_it_is_done(client, backend):
    backend.say(json.dumps(ATLAS))
    parsed = []
    with client.responses.stream(model="double", input="Oslo?", text_format=Atlas) as stream:
        for event in stream:
            if event.type == "response.output_text.done":
                parsed.append(event.parsed)
        final = stream.get_final_response()
    assert parsed == [Atlas.model_validate(ATLAS)]
    assert final.output_parsed == parsed[0]


def test_arguments_of_a_function_are_parsed(client, backend):
    backend.call(("GetWeather", {"city": "Oslo", "days": 3}))
    tool = openai.pydantic_function_tool(GetWeather)
    response = client.responses.parse(model="double", input="Oslo?", tools=[tool])
    [call] = response.output
    assert call.parsed_arguments == GetWeather(city="Oslo", days=3)
    assert call.arguments == '{"city": "Oslo", "days": 3}'
    [offered] = backend.requests[0]["tools"]
    assert offered["function"]["name"] == "GetWeather"
    assert offered["function"]["strict"] is True
    assert offered["function"]["parameters"]["required"] == ["city", "days"]


def test_a_strict_schema_that_is_not_kept_is_tried_again(client, backend):
    backend.say('{"cities": "none"}')
    backend.say(json.dumps(ATLAS))
    response = client.responses.parse(model="double", input="Oslo?", text_format=Atlas)
    assert response.output_parsed == Atlas.model_validate(ATLAS)
    assert len(backend.requests) == 2


def test_json_without_a_schema_is_asked_for_as_such(client, backend):
    backend.say('{"a": 1}')
    response = client.responses.create(
        model="double", input="JSON, please", text={"format": {"type": "json_object"}}
    )
    assert backend.requests[0]["response_format"] == {"type": "json_object"}
    assert json.loads(response.output_text) == {"a": 1}


def test_a_schema_that_is_none_is_refused_with_its_place(client, backend):
    format = {"type": "json_schema", "name": "x", "schema": {"type": "strin"}, "strict": True}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="double", input="hi", text={"format": format})
    assert caught.value.param.startswith("text.format.schema")
