"""ShareGPT conversations in the tags of the Hermes models."""

import json
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from trajectile.exports.card import FOLDER, KEYS, differences, text, write_card
from trajectile.exports.example import Example, blocks, object_of, require_trainable, without_system
from trajectile.exports.format import Counts, LineWriter
from trajectile.rows import PromptKey, ToolCall, Turn

CALL_SCHEMA = {
    "title": "FunctionCall",
    "type": "object",
    "properties": {
        "name": {"title": "Name", "type": "string"},
        "arguments": {"title": "Arguments", "type": "object"},
    },
    "required": ["name", "arguments"],
}
SYSTEM = """You are an AI model that can call functions to carry out what the user asks. The functions on offer are
listed with their JSON schemas between <tools> and </tools>:
<tools>
{tools}
</tools>
A call is a JSON object of this schema:
{schema}
Write each call between <tool_call> and </tool_call>; its result comes back in <tool_response>:
<tool_call>
{{"name": <function-name>, "arguments": <arguments-object>}}
</tool_call>"""


class Said(msgspec.Struct, rename={"from_": "from"}):
    from_: str
    value: str | msgspec.Raw


class HermesRow(msgspec.Struct):
    """`tools` is JSON text, the same schemas as in the system turn."""

    conversations: list[Said]
    tools: msgspec.Raw
    prompt_index: int
    prompt_key: PromptKey


FEATURES = [{"name": "conversations", "list": [text("from"), text("value")]}, text("tools"), *KEYS]
BODY = """# Conversations for Hermes models

{differences}

`conversations` is a list of turns `from` (system, human, gpt, tool) and `value`: the schemas of the tools stand
in the system turn; each gpt turn has its reasoning in `<think>` (empty where there is none) and its calls in
`<tool_call>`; results are `<tool_response>` blocks, the results of one turn together. Rendered as ChatML with
the roles system, user, assistant and tool.

```python
from datasets import load_dataset

rows = load_dataset("{folder}", split="train")
```
"""


class HermesWriter(LineWriter):
    name = "hermes"
    load = 'ShareGPT turns with Hermes tags: `load_dataset("exports/hermes")`'

    def convert(self, example: Example) -> tuple[HermesRow, list[str]]:
        require_trainable(example)
        system, rest = without_system(example)
        said = [Said("system", _system(system, example.tools.text))]
        for block in blocks(rest):
            said.append(Said(block.turn.from_, _value(block.turn)))
            if block.results:
                said.append(Said("tool", "\n".join(_response(result) for result in block.results)))
        return HermesRow(said, example.tools.written, example.row.prompt_index, example.row.prompt_key), []

    def describe(self, splits: list[str], counts: Counts) -> None:
        body = BODY.format(differences=differences(counts), folder=FOLDER)
        write_card(self.target.folder, {split: f"{split}.jsonl" for split in splits}, FEATURES, body)


@lru_cache(maxsize=64)
def _system(given: str, tools: str) -> msgspec.Raw:
    """Return the system turn as it is written; there are few of them, and each is long."""
    text = SYSTEM.format(tools=_dumps(orjson.loads(tools)), schema=_dumps(CALL_SCHEMA))
    return msgspec.Raw(msgspec.json.encode(f"{given}\n\n{text}" if given else text))


def _value(turn: Turn) -> str:
    if turn.from_ != "gpt":
        return turn.value
    reasoning = f"{turn.reasoning}\n" if turn.reasoning else ""
    parts = [turn.value] if turn.value or not turn.tool_calls else []
    return "\n".join([f"<think>\n{reasoning}</think>", *parts, *map(_call, turn.tool_calls)])


def _call(call: ToolCall) -> str:
    return f"<tool_call>\n{_dumps({'name': call.name, 'arguments': object_of(call)})}\n</tool_call>"


def _response(turn: Turn) -> str:
    answer = {"tool_call_id": turn.tool_call_id, "name": turn.name, "content": _content(turn.value)}
    return f"<tool_response>\n{_dumps(answer)}\n</tool_response>"


def _content(text: str) -> Any:
    """Return a result that is a JSON object or list as what it is, any other as its text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _dumps(value: Any) -> str:
    """Return JSON with the spaces that the models have seen in training."""
    return json.dumps(value, ensure_ascii=False)
