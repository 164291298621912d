"""Chat messages with tool calls, as TRL, Axolotl and Unsloth take them."""

from typing import Any

import msgspec
import yaml

from trajectile.exports.card import FOLDER, KEYS, differences, text, write_card, write_text
from trajectile.exports.example import Example, object_of, require_trainable, without_system
from trajectile.exports.format import Counts, LineWriter
from trajectile.rows import PromptKey, ToolCall, Turn

ROLES = {"human": "user", "gpt": "assistant", "tool": "tool", "system": "system"}


class Function(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str


class Call(msgspec.Struct):
    id: str
    type: str
    function: Function


class Message(msgspec.Struct, omit_defaults=True):
    """`content` is never null; what a message does not have is left out, since templates ask whether it is there.

    `train` is False in assistant turns that came with the prompt.
    """

    role: str
    content: str
    reasoning_content: str = ""
    tool_calls: list[Call] = []
    tool_call_id: str = ""
    name: str = ""
    train: bool = True


class MessagesRow(msgspec.Struct):
    """`tools` is JSON text."""

    messages: list[Message]
    tools: msgspec.Raw
    prompt_index: int
    prompt_key: PromptKey


# Each message as one JSON value: nothing is filled with nulls, and arguments keep their types.
AS_JSON = [{"name": "messages", "list": "json"}]
_FUNCTION = {"name": "function", "struct": [text("name"), text("arguments")]}
AS_STRUCT = [
    {
        "name": "messages",
        "list": [
            text("role"),
            text("content"),
            text("reasoning_content"),
            {"name": "tool_calls", "list": [text("id"), text("type"), _FUNCTION]},
            text("tool_call_id"),
            text("name"),
            {"name": "train", "dtype": "bool"},
        ],
    }
]

BODY = """# Chat messages with tool calls

{differences}

Columns: `messages` in the chat-completions shape, with `reasoning_content`; `tools`, the schemas of the tools
on offer, as JSON text; `prompt_index` and `prompt_key` name the prompt. Arguments of tool calls are
{arguments}. Assistant messages that came with the prompt carry `train: false`. Rows noted for a late system
turn have one after the start, which the chat templates of some models refuse.

TRL{versions}:

```python
from datasets import load_dataset
from trl import SFTTrainer

rows = load_dataset("{folder}", split="train")
trainer = SFTTrainer(model="...", train_dataset=rows)
```

Load the folder, not the file alone: the head of this page says what its columns are, and a guess goes wrong
where the first rows hold no tool call.

Templates differ in what they take: those of Llama 3 refuse parallel calls, that of gpt-oss renders the first of
them only, that of DeepSeek-V3 wants `export_arguments: string`.

Axolotl: copy `axolotl.yaml` into the configuration, and set `path` to this folder.

Unsloth: load as above and render with the template of the model, without `standardize_data_formats`:

```python
import json

texts = rows.map(lambda row: {{"text": tokenizer.apply_chat_template(
    row["messages"], tools=json.loads(row["tools"]), tokenize=False)}})
```
"""
FOR_OBJECTS = ("JSON objects", " (datasets 4.7 or newer; older ones take `export_arguments: string`)")
FOR_STRINGS = (
    "JSON text, and `datasets` fills what a message does not have with `None`: take these out before rendering",
    "",
)


class MessagesWriter(LineWriter):
    name = "messages"
    load = 'TRL, Axolotl, Unsloth: `load_dataset("exports/messages")`; `axolotl.yaml` is the snippet for Axolotl'

    def convert(self, example: Example) -> tuple[MessagesRow, list[str]]:
        require_trainable(example)
        system, rest = without_system(example)
        messages = [Message("system", system)] if system else []
        messages += [self._message(turn, number < rest.given) for number, turn in enumerate(rest.turns)]
        row = MessagesRow(messages, example.tools.written, example.row.prompt_index, example.row.prompt_key)
        return row, ["late_system_turn"] if any(turn.from_ == "system" for turn in rest.turns) else []

    def _message(self, turn: Turn, given: bool) -> Message:
        role = ROLES[turn.from_]
        if role == "assistant":
            calls = [self._call(call) for call in turn.tool_calls]
            return Message(role, turn.value, turn.reasoning, calls, train=not given)
        if role == "tool":
            return Message(role, turn.value, tool_call_id=turn.tool_call_id, name=turn.name)
        return Message(role, turn.value)

    def _call(self, call: ToolCall) -> Call:
        arguments = object_of(call)  # in text too, since some readers parse it
        written = arguments if self.target.options.arguments == "object" else call.arguments
        return Call(call.id, "function", Function(call.name, written))

    def describe(self, splits: list[str], counts: Counts) -> None:
        objects = self.target.options.arguments == "object"
        arguments, versions = FOR_OBJECTS if objects else FOR_STRINGS
        body = BODY.format(differences=differences(counts), arguments=arguments, versions=versions, folder=FOLDER)
        features = [*(AS_JSON if objects else AS_STRUCT), text("tools"), *KEYS]
        write_card(self.target.folder, {split: f"{split}.jsonl" for split in splits}, features, body)
        write_text(self.target.folder / "axolotl.yaml", axolotl(splits))


def axolotl(splits: list[str]) -> str:
    """Return the part of an Axolotl configuration that reads this export."""
    lists = {"train": "datasets", "validation": "test_datasets"}
    entries = {lists[split]: [_axolotl_entry(split)] for split in splits}
    return yaml.safe_dump(entries, sort_keys=False)


def _axolotl_entry(split: str) -> dict[str, Any]:
    return {
        "path": FOLDER,
        "split": split,
        "type": "chat_template",
        "field_messages": "messages",
        "field_tools": "tools",
        "roles_to_train": ["assistant"],
        "message_field_training": "train",
    }
