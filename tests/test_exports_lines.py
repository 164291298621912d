"""The formats of one JSON line a row: messages, hermes, llamafactory."""

import json

import pytest
import yaml
from exports_samples import NESTED, ODD_TEXT, SAMPLES, export, folder_of, left_out, rows_of, sample_run, summary_of
from trajectile.tools.registry import TOOLSETS


def one(tmp_path, sample, name, *options):
    run = sample_run(tmp_path, [sample])
    export(run, "--exports", name, *options)
    [row] = rows_of(run, name)
    return row


def test_messages_have_the_shape_of_chat_completions(tmp_path):
    row = one(tmp_path, "parallel", "messages")
    ask, calls, first, second, answer = row["messages"]
    assert ask == {"role": "user", "content": "read two files"}
    assert calls["content"] == "I read both." and "reasoning_content" not in calls
    assert calls["tool_calls"][0] == {
        "id": "p1",
        "type": "function",
        "function": {"name": "read_file", "arguments": {"path": "a"}},
    }
    assert calls["tool_calls"][1]["function"]["arguments"] == json.loads(NESTED)
    assert first == {"role": "tool", "content": "text of a", "tool_call_id": "p1", "name": "read_file"}
    assert second["tool_call_id"] == "p2"
    assert answer == {
        "role": "assistant",
        "content": "The answer is 42.",
        "reasoning_content": "I have seen the output.",
    }


def test_tools_of_a_row_are_those_of_its_toolsets(tmp_path):
    tools = json.loads(one(tmp_path, "one_call", "messages")["tools"])
    assert [tool["function"]["name"] for tool in tools] == [
        tool.name for toolset in ("file", "terminal") for tool in TOOLSETS[toolset]
    ]


def test_run_json_may_say_itself_what_a_toolset_holds(tmp_path):
    run = sample_run(tmp_path, ["one_call"])
    identity = json.loads(run.folder.run_json.read_bytes())
    run.write(run.folder.run_json, identity | {"toolsets": {"terminal": ["process"], "file": ["patch"]}})
    export(run, "--exports", "messages")
    names = [tool["function"]["name"] for tool in json.loads(rows_of(run)[0]["tools"])]
    assert names == ["patch", "process"]


def test_arguments_as_text_stay_as_the_model_wrote_them(tmp_path):
    row = one(tmp_path, "parallel", "messages", "--export_arguments", "string")
    assert row["messages"][1]["tool_calls"][1]["function"]["arguments"] == NESTED


def test_content_is_never_null_and_every_character_arrives(tmp_path):
    run = sample_run(tmp_path)
    export(run, "--exports", "messages")
    rows = rows_of(run)
    assert all(isinstance(m["content"], str) for row in rows for m in row["messages"])
    [odd] = [row for row in rows if list(SAMPLES)[row["prompt_index"]] == "odd_text"]
    assert [m["content"] for m in odd["messages"] if m["content"]] == [ODD_TEXT] * 3
    assert odd["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"command": ODD_TEXT}


def test_given_turns_are_marked_and_get_ids(tmp_path):
    messages = one(tmp_path, "given_turns", "messages")["messages"]
    roles = [m["role"] for m in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant"]
    assert [m.get("train") for m in messages if m["role"] == "assistant"] == [False, False, None, None]
    assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"] != ""
    assert messages[3]["name"] == "terminal"


def test_a_system_turn_after_the_start_is_kept_and_noted(tmp_path):
    run = sample_run(tmp_path)
    export(run, "--exports", "messages")
    assert summary_of(run, "messages").noted == {"late_system_turn": 1}
    [row] = [row for row in rows_of(run) if list(SAMPLES)[row["prompt_index"]] == "late_system"]
    assert [m["role"] for m in row["messages"]] == ["user", "system", "user", "assistant"]


def test_axolotl_snippet_names_the_splits(tmp_path):
    run = sample_run(tmp_path)
    export(run, "--exports", "messages", "--export_validation_fraction", "0.5")
    snippet = yaml.safe_load((folder_of(run, "messages") / "axolotl.yaml").read_text())
    assert [snippet[name][0]["split"] for name in ("datasets", "test_datasets")] == ["train", "validation"]


def test_hermes_turns_carry_tags(tmp_path):
    row = one(tmp_path, "parallel", "hermes")
    system, ask, calls, results, answer = row["conversations"]
    assert [turn["from"] for turn in row["conversations"]] == ["system", "human", "gpt", "tool", "gpt"]
    listed = system["value"].split("<tools>\n")[1].split("\n</tools>")[0]
    assert json.loads(listed) == json.loads(row["tools"]) and len(json.loads(listed)) == 6
    assert ask["value"] == "read two files"
    assert calls["value"].startswith("<think>\n</think>\nI read both.\n<tool_call>\n")
    written = [part.split("\n</tool_call>")[0] for part in calls["value"].split("<tool_call>\n")[1:]]
    assert [json.loads(call) for call in written] == [
        {"name": "read_file", "arguments": {"path": "a"}},
        {"name": "read_file", "arguments": json.loads(NESTED)},
    ]
    answers = [part.split("\n</tool_response>")[0] for part in results["value"].split("<tool_response>\n")[1:]]
    assert [json.loads(text) for text in answers] == [
        {"tool_call_id": "p1", "name": "read_file", "content": "text of a"},
        {"tool_call_id": "p2", "name": "read_file", "content": {"content": "text of b", "lines": 1}},
    ]
    assert answer["value"] == "<think>\nI have seen the output.\n</think>\nThe answer is 42."


def test_hermes_joins_a_given_system_turn_and_keeps_a_later_one(tmp_path):
    turns = one(tmp_path, "given_turns", "hermes")["conversations"]
    assert turns[0]["value"].startswith("Be brief.\n\nYou are") and turns[1]["from"] == "human"
    turns = one(tmp_path / "other", "late_system", "hermes")["conversations"]
    assert [turn["from"] for turn in turns] == ["system", "human", "system", "human", "gpt"]


def alternates(row):
    kinds = [turn["from"] for turn in row["conversations"]]
    return (
        len(kinds) % 2 == 0
        and set(kinds[::2]) <= {"human", "observation"}
        and set(kinds[1::2]) <= {"gpt", "function_call"}
    )


def test_llamafactory_rows_alternate_and_the_others_are_named(tmp_path):
    run = sample_run(tmp_path)
    export(run, "--exports", "llamafactory")
    assert all(alternates(row) for row in rows_of(run, "llamafactory"))
    assert left_out(run, "llamafactory") == {
        "bad_arguments": "arguments_not_an_object",
        "list_arguments": "arguments_not_an_object",
        "two_humans": "does_not_alternate",
        "late_system": "does_not_alternate",
        "tags_in_reasoning": "tags_in_reasoning",
        "nothing_made": "no_assistant_turn",
    }
    # Two rows end with results; "parallel" and the given turn have text beside their calls.
    assert summary_of(run, "llamafactory").noted == {"text_beside_calls": 2, "trimmed": 2}


def test_llamafactory_joins_parallel_results_and_moves_text_into_the_thought(tmp_path):
    row = one(tmp_path, "parallel", "llamafactory")
    _, calls, results, _ = row["conversations"]
    assert calls["value"].startswith("<think>\nI read both.\n</think>\n\n[")
    assert json.loads(calls["value"].split("</think>\n\n")[1]) == [
        {"name": "read_file", "arguments": {"path": "a"}},
        {"name": "read_file", "arguments": json.loads(NESTED)},
    ]
    assert results["from"] == "observation"
    assert results["value"].split("\n</tool_response>\n<tool_response>\n") == [
        "text of a",
        '{"content": "text of b", "lines": 1}',
    ]


def test_llamafactory_has_the_system_turn_in_a_column(tmp_path):
    row = one(tmp_path, "given_turns", "llamafactory")
    assert row["system"] == "Be brief."
    kinds = [turn["from"] for turn in row["conversations"]]
    assert kinds == ["human", "function_call", "observation", "gpt", "human", "function_call", "observation", "gpt"]


def test_llamafactory_hides_tags_in_arguments_from_its_own_parser(tmp_path):
    value = one(tmp_path, "tags_in_arguments", "llamafactory")["conversations"][1]["value"]
    thought, _, calls = value.partition("</think>\n\n")
    assert thought == "<think>\nI look first.\n" and "<" not in calls
    [call] = json.loads(calls)
    assert call["arguments"]["command"].startswith("echo <think>x</think> <tool_call>{}")


@pytest.mark.parametrize("fraction", ["0", "0.5"])
def test_dataset_info_names_a_file_for_each_split(tmp_path, fraction):
    run = sample_run(tmp_path)
    export(run, "--exports", "llamafactory", "--export_validation_fraction", fraction)
    folder = folder_of(run, "llamafactory")
    info = json.loads((folder / "dataset_info.json").read_text())
    assert list(info) == ["trajectile", "trajectile_validation"][: 1 if fraction == "0" else 2]
    assert all((folder / entry["file_name"]).exists() for entry in info.values())
