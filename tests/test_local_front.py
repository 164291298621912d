"""The front of the embedded model: translation as functions, then over HTTP with the real model behind it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from jsonschema import Draft202012Validator
from local_weights import MODEL, private_cache
from trajectile.model.local.manager import Endpoint, local_endpoint
from trajectile.model.local.rendering import BadRequest
from trajectile.model.local.replies import read_reply
from trajectile.model.local.translate import engine_request, repeats


def tool(name: str, *required: str, **properties: Any) -> dict[str, Any]:
    fields = {**{key: {"type": "string"} for key in required}, **properties}
    parameters = {"type": "object", "properties": fields, "required": list(required)}
    function = {"name": name, "description": f"Does {name}. More words.", "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool("terminal", "command"), tool("read_file", "path"), tool("write_file", "path", "content")]
ASK = [{"role": "user", "content": "List the files here."}]


def called(name: str, arguments: str, call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **fields}


def result(text: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def accepted(reply: dict[str, Any], **body: Any) -> bool:
    request = engine_request({"messages": ASK, "tools": TOOLS, **body})
    schema = request["response_format"]["json_schema"]["schema"]
    return Draft202012Validator(schema).is_valid(reply)


CALL = {"thought": "I list the files.", "tool": "terminal", "arguments": {"command": "ls"}}
READ = {"thought": "I read the file.", "tool": "read_file", "arguments": {"path": "a"}}
ANSWER = {"thought": "That was all of it.", "answer": "Done."}


@pytest.mark.parametrize(
    ("choice", "call", "read", "answer"),
    [
        ("auto", True, True, True),
        (None, True, True, True),
        ("required", True, True, False),
        ("none", False, False, True),
        ({"type": "function", "function": {"name": "read_file"}}, False, True, False),
    ],
)
def test_tool_choice_decides_what_a_reply_may_be(choice: Any, call: bool, read: bool, answer: bool) -> None:
    found = [accepted(reply, tool_choice=choice) for reply in (CALL, READ, ANSWER)]
    assert found == [call, read, answer]


def test_replies_have_a_thought_known_names_and_the_arguments_of_their_tool() -> None:
    assert not accepted({"tool": "terminal", "arguments": {"command": "ls"}})
    assert not accepted({**CALL, "tool": "format_disk"})
    assert not accepted({**CALL, "arguments": {"path": "ls"}})
    assert not accepted({**CALL, "arguments": {}})
    assert not accepted({**CALL, "thought": "x" * 500})


@pytest.mark.parametrize("off", [{"reasoning": {"enabled": False}}, {"reasoning_effort": "none"}])
def test_no_thought_is_asked_for_when_reasoning_is_off(off: dict[str, Any]) -> None:
    assert accepted({"answer": "Done."}, **off)
    assert not accepted(ANSWER, **off)


def test_free_text_is_bounded_by_max_tokens() -> None:
    command = {**CALL, "arguments": {"command": "x" * 150}}
    assert accepted(command, max_tokens=256)
    assert not accepted(command, max_tokens=128)
    assert not accepted({**CALL, "arguments": {"command": "x" * 5000}}, max_tokens=100_000)


def test_schemas_with_references_lists_and_patterns_are_made_plain() -> None:
    item = {"$ref": "#/$defs/Item"}
    parameters = {
        "type": "object",
        "$defs": {"Item": {"type": "object", "properties": {"id": {"type": "string", "pattern": "["}}}},
        "properties": {"todos": {"type": "array", "items": item}, "note": {"type": ["string", "null"]}},
    }
    tools = [{"type": "function", "function": {"name": "todo", "parameters": parameters}}]
    request = engine_request({"messages": ASK, "tools": tools, "tool_choice": "required"})
    schema = request["response_format"]["json_schema"]["schema"]
    text = json.dumps(schema)
    assert "$ref" not in text and "pattern" not in text and "maxItems" in text
    arguments = {"todos": [{"id": "1"}], "note": None}
    reply = {"thought": "I note it down.", "tool": "todo", "arguments": arguments}
    assert Draft202012Validator(schema).is_valid(reply)
    assert not Draft202012Validator(schema).is_valid({**reply, "arguments": {"todos": [{"id": 1}]}})


def rendered(messages: list[dict[str, Any]], **body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine_request({"messages": messages, "tools": TOOLS, **body})["messages"]
    return found


def test_history_is_written_in_the_form_the_model_answers_in() -> None:
    history = [
        {"role": "system", "content": "Be short."},
        *ASK,
        called("terminal", '{"command": "ls"}', reasoning_content="I list."),
        result("a.txt"),
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        {"role": "assistant", "content": "Nothing."},
    ]
    system, *turns = rendered(history)
    assert system["content"].startswith("Be short.\n\nYou have these tools:\n- Does terminal: ")
    assert '{"tool": "write_file", "arguments": {"path": "...", "content": "..."}}' in system["content"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert json.loads(turns[1]["content"]) == {
        "thought": "I list.",
        "tool": "terminal",
        "arguments": {"command": "ls"},
    }
    assert turns[2]["content"] == "Result of terminal:\na.txt\n\nAnd now?"
    assert json.loads(turns[3]["content"]) == {"answer": "Nothing."}


def test_the_same_call_twice_leaves_only_an_answer() -> None:
    once = [*ASK, called("terminal", '{"command":"ls"}'), result("a")]
    twice = [*once, called("terminal", '{ "command": "ls" }', "c2"), result("a", "c2")]
    assert not repeats(once)
    assert repeats(twice)
    assert not repeats([*twice, {"role": "user", "content": "Again."}])
    assert not repeats([*twice, called("terminal", '{"command": "pwd"}', "c3")])
    assert not accepted(CALL, messages=twice)
    assert accepted(ANSWER, messages=twice)
    assert accepted(CALL, messages=twice, tool_choice="required")


def test_arguments_that_are_no_json_stay_text_in_the_history() -> None:
    turns = rendered([*ASK, called("terminal", "{'a': 1}"), result("Error: bad arguments")])
    assert json.loads(turns[2]["content"])["arguments"] == "{'a': 1}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": []}, "messages must be a list"),
        ({"messages": ["hi"]}, "object with a role"),
        ({"messages": [{"role": "ghost", "content": "x"}]}, "unknown role 'ghost'"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "text only"),
        ({"stream": True}, "does not stream"),
        ({"n": 2}, "one choice"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"tools": [{"type": "function"}]}, "each tool"),
        ({"tool_choice": "maybe"}, "unknown tool_choice 'maybe'"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "names 'x'"),
    ],
)
def test_requests_that_cannot_be_answered_are_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        engine_request({"messages": ASK, "tools": TOOLS, **body})


def test_sampling_settings_and_limits_are_passed_on() -> None:
    request = engine_request({"messages": ASK, "temperature": 0, "seed": 7, "logit_bias": {"1": 2}})
    assert request["temperature"] == 0 and request["seed"] == 7
    assert "logit_bias" not in request
    assert request["max_tokens"] == 384
    assert engine_request({"messages": ASK, "max_completion_tokens": 50})["max_tokens"] == 50


def test_replies_become_messages() -> None:
    call = read_reply(json.dumps(CALL), "stop")
    assert call.finish_reason == "tool_calls"
    assert call.message["content"] is None
    assert call.message["reasoning_content"] == "I list the files."
    assert call.message["tool_calls"][0]["function"] == {"name": "terminal", "arguments": '{"command": "ls"}'}
    ids = {read_reply(json.dumps(CALL), "stop").message["tool_calls"][0]["id"] for _ in range(50)}
    assert len(ids) == 50 and all(i.startswith("call_") for i in ids)
    answer = read_reply(json.dumps(ANSWER), "stop")
    assert answer == (
        {"role": "assistant", "content": "Done.", "reasoning_content": "That was all of it."},
        "stop",
    )


def test_a_cut_reply_keeps_what_came() -> None:
    call = read_reply('{"thought": "I \\"write\\".", "tool": "write_file", "arguments": {"path": "a', "length")
    assert call.finish_reason == "length"
    assert call.message["reasoning_content"] == 'I "write".'
    assert call.message["tool_calls"][0]["function"] == {"name": "write_file", "arguments": '{"path": "a'}
    answer = read_reply('{"thought": "I tell.", "answer": "It w', "length")
    assert (answer.finish_reason, answer.message["content"]) == ("length", "It w")
    escape = read_reply('{"thought": "I tell.", "answer": "It \\\\ w\\u00', "length")
    assert escape.message["content"] == "It \\ w"
    early = read_reply('{"thou', "length")
    assert early == ({"role": "assistant", "content": ""}, "length")


def test_half_surrogates_reach_no_caller() -> None:
    message = read_reply('{"thought": "I say \\ud83d it", "answer": "\\ud83d\\ude00 \\ude00"}', "stop").message
    assert message["content"] == "😀 \ufffd"
    assert message["reasoning_content"] == "I say \ufffd it"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    cache = private_cache(tmp_path_factory.mktemp("front") / "cache")
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("TRAJECTILE_CACHE", str(cache))
        context = local_endpoint(MODEL, n_parallel=2, idle_s=0.5)
        yield runner.run(context.__aenter__())
        runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key, max_retries=0, timeout=200) as found:
        yield found


def complete(client: openai.OpenAI, messages: list[Any] = ASK, **options: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages, temperature=0, **options)


real = pytest.mark.local_model


@real
def test_the_model_is_listed_under_its_own_name(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]


@real
@pytest.mark.parametrize("prompt", ["List the files here.", "Write hello into hello.txt.", "Read notes.txt."])
def test_required_calls_are_valid(client: openai.OpenAI, prompt: str) -> None:
    found = complete(client, [{"role": "user", "content": prompt}], tools=TOOLS, tool_choice="required")
    choice = found.choices[0]
    assert choice.finish_reason == "tool_calls"
    function = choice.message.tool_calls[0].function
    wanted = {t["function"]["name"]: t["function"]["parameters"]["required"] for t in TOOLS}
    assert sorted(json.loads(function.arguments)) == sorted(wanted[function.name])
    assert len(choice.message.reasoning_content) >= 12
    assert found.usage.completion_tokens > 0 and found.model == MODEL


@real
def test_a_named_tool_is_the_one_called(client: openai.OpenAI) -> None:
    choice = {"type": "function", "function": {"name": "write_file"}}
    message = complete(client, tools=TOOLS, tool_choice=choice).choices[0].message
    assert message.tool_calls[0].function.name == "write_file"


@real
def test_after_the_same_call_twice_comes_an_answer(client: openai.OpenAI) -> None:
    repeated = [m for i in "ab" for m in (called("terminal", '{"command": "ls"}', i), result("a.txt", i))]
    choice = complete(client, [*ASK, *repeated], tools=TOOLS).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content and not choice.message.tool_calls


@real
def test_without_tools_comes_plain_text_with_a_thought(client: openai.OpenAI) -> None:
    choice = complete(client, [{"role": "user", "content": "Say hello."}]).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content and not choice.message.content.startswith("{")
    assert choice.message.reasoning_content


@real
def test_a_wanted_form_of_the_answer_is_kept(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    choice = complete(client, [{"role": "user", "content": "2 + 2?"}], response_format=wanted).choices[0]
    assert isinstance(json.loads(choice.message.content)["sum"], int)


@real
def test_few_tokens_end_with_length(client: openai.OpenAI) -> None:
    found = complete(client, tools=TOOLS, max_tokens=6)
    assert found.choices[0].finish_reason == "length"
    assert found.usage.completion_tokens == 6


@real
def test_too_long_a_conversation_is_told_by_its_code(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, [{"role": "user", "content": "word " * 9000}])
    assert caught.value.code == "context_length_exceeded"


@real
def test_errors_have_openais_form(client: openai.OpenAI, endpoint: Endpoint) -> None:
    with pytest.raises(openai.AuthenticationError):
        complete(client.with_options(api_key="wrong"))
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "hi"}])
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="unknown role 'ghost'"):
        complete(client, [{"role": "ghost", "content": "hi"}])
    with pytest.raises(openai.BadRequestError, match="malformed request: KeyError"):
        complete(client, [{"role": "assistant", "tool_calls": [{"id": "x"}]}])
    with pytest.raises(openai.NotFoundError):
        client.post("/nothing", cast_to=object)
