"""Conversations in LLaMA-Factory's sharegpt format: strictly alternating, calls and results as turns of their own."""

from typing import Any, NamedTuple

import msgspec

from trajectile.exports.card import FOLDER, KEYS, differences, text, write_card, write_text
from trajectile.exports.example import (
    Block,
    Example,
    LeftOut,
    blocks,
    object_of,
    require_trainable,
    without_system,
)
from trajectile.exports.format import Counts, LineWriter
from trajectile.exports.selection import TRAIN
from trajectile.rows import PromptKey, Turn

# How its own converter joins the results of parallel calls.
BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"
# It looks for these in a turn with calls, in the JSON too.
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
ASKS, ANSWERS = ("human", "observation"), ("gpt", "function_call")


class Said(msgspec.Struct, rename={"from_": "from"}):
    from_: str
    value: str


class LlamaFactoryRow(msgspec.Struct):
    """`tools` is JSON text."""

    conversations: list[Said]
    system: str
    tools: msgspec.Raw
    prompt_index: int
    prompt_key: PromptKey


class Aligned(NamedTuple):
    """The turns of a row, and what has to be noted about them."""

    turns: list[Said]
    notes: list[str]


FEATURES = [{"name": "conversations", "list": [text("from"), text("value")]}, text("system"), text("tools"), *KEYS]
BODY = """# Conversations for LLaMA-Factory

{differences}

Turns alternate: `human` or `observation`, then `gpt` or `function_call`. Reasoning stands in `<think>` before
the answer or the calls; text that the model wrote beside its calls was moved there (noted as text beside
calls), since a turn with calls takes nothing else. Results after the last answer are trimmed, as nothing is
learned from them. Loss is on `gpt` and `function_call`, also where such turns came with the prompt;
`mask_history: true` keeps the last one only.

```yaml
dataset_dir: {folder}
dataset: {names}
```
"""


class LlamaFactoryWriter(LineWriter):
    name = "llamafactory"
    load = "LLaMA-Factory: `dataset_dir: exports/llamafactory`, `dataset: trajectile`"

    def convert(self, example: Example) -> tuple[LlamaFactoryRow, list[str]]:
        require_trainable(example)
        system, rest = without_system(example)
        turns, notes = align(rest)
        row = LlamaFactoryRow(turns, system, example.tools.written, example.row.prompt_index, example.row.prompt_key)
        return row, notes

    def describe(self, splits: list[str], counts: Counts) -> None:
        info = {dataset_name(split): _info(split) for split in splits}
        body = BODY.format(differences=differences(counts), folder=FOLDER, names=dataset_name(TRAIN))
        write_card(self.target.folder, {split: f"{split}.jsonl" for split in splits}, FEATURES, body)
        written = msgspec.json.format(msgspec.json.encode(info), indent=2).decode()
        write_text(self.target.folder / "dataset_info.json", written + "\n")


def dataset_name(split: str) -> str:
    return "trajectile" if split == TRAIN else f"trajectile_{split}"


def _info(split: str) -> dict[str, Any]:
    return {
        "file_name": f"{split}.jsonl",
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
    }


def align(example: Example) -> Aligned:
    """Return turns that alternate and end with an answer; LeftOut where they cannot without losing what was said."""
    turns: list[Said] = []
    notes: list[str] = []
    for block in blocks(example):
        turns.append(_said(block, notes))
        if block.results:
            turns.append(Said("observation", BETWEEN_RESULTS.join(result.value for result in block.results)))
    if turns[-1].from_ in ASKS:
        turns.pop()
        notes.append("trimmed")
    if len(turns) % 2 or any(turn.from_ not in (ASKS, ANSWERS)[n % 2] for n, turn in enumerate(turns)):
        raise LeftOut("does_not_alternate")
    return Aligned(turns, notes)


def _said(block: Block, notes: list[str]) -> Said:
    turn = block.turn
    if turn.from_ != "gpt":
        return Said(turn.from_, turn.value)
    if not turn.tool_calls:
        return Said("gpt", _thought([turn.reasoning]) + turn.value)
    thoughts = [turn.reasoning, turn.value]
    if turn.value.strip() and "text_beside_calls" not in notes:
        notes.append("text_beside_calls")
    if any(tag in thought for thought in thoughts for tag in TAGS):
        raise LeftOut("tags_in_reasoning")
    return Said("function_call", _thought(thoughts) + _calls(turn))


def _thought(texts: list[str]) -> str:
    thought = "\n\n".join(text for text in texts if text.strip())
    return f"<think>\n{thought}\n</think>\n\n" if thought else ""


def _calls(turn: Turn) -> str:
    calls = [{"name": call.name, "arguments": object_of(call)} for call in turn.tool_calls]
    written = msgspec.json.encode(calls).decode()
    return written.replace("<", "\\u003c") if any(tag in written for tag in TAGS) else written
