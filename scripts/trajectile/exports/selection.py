"""Which rows are exported, in which split, and whether their failing tool calls go with them."""

from hashlib import blake2b
from typing import NamedTuple

import msgspec

from trajectile.exports.example import Example, LeftOut
from trajectile.rows import Turn
from trajectile.tools.tool import is_failure

TRAIN, VALIDATION = "train", "validation"
# English prose has about 4 bytes a token, code and JSON about 3.
BYTES_A_TOKEN = 3.5
DIGEST_BYTES = 16


class Options(NamedTuple):
    """What the user asks of every export; 0 is no limit. `arguments` is object or string, `deduplicate` none,
    conversations or prompts."""

    only_completed: bool = False
    min_turns: int = 0
    max_tokens: int = 0
    drop_failed_calls: bool = False
    validation_fraction: float = 0.0
    deduplicate: str = "none"
    arguments: str = "object"
    seed: int = 0


class Selection:
    """Applies the options to one row after the other."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._seen: set[bytes] = set()

    def take(self, example: Example) -> Example:
        """Return the row as it is to be exported; LeftOut where it is not."""
        options = self.options
        if options.only_completed and not example.row.completed:
            raise LeftOut("not_completed")
        if options.drop_failed_calls:
            example = example._replace(turns=without_failures(example))
        if options.min_turns and _own_turns(example) < options.min_turns:
            raise LeftOut("too_few_turns")
        if options.max_tokens and estimated_tokens(example) > options.max_tokens:
            raise LeftOut("too_many_tokens")
        if options.deduplicate != "none":
            self._refuse_seen(_identity(example, options.deduplicate))
        return example

    def _refuse_seen(self, identity: bytes) -> None:
        if identity in self._seen:
            raise LeftOut("duplicate")
        self._seen.add(identity)

    def split(self, example: Example) -> str:
        """Return the split of a row: all rows of a prompt share it, whatever else the run holds."""
        digest = blake2b(f"{self.options.seed}:{example.row.prompt_key}".encode(), digest_size=8).digest()
        drawn = int.from_bytes(digest) / 2**64
        return VALIDATION if drawn < self.options.validation_fraction else TRAIN


def _own_turns(example: Example) -> int:
    return sum(turn.from_ == "gpt" for turn in example.turns[example.given :])


def without_failures(example: Example) -> list[Turn]:
    """Return the turns without the model's failing calls and their results; a turn left without calls goes too."""
    failed = {turn.tool_call_id for turn in example.turns[example.given :] if _is_failure(turn)} - {""}
    kept = list(example.turns[: example.given])
    for turn in example.turns[example.given :]:
        calls = [call for call in turn.tool_calls if call.id not in failed]
        if turn.tool_call_id not in failed and (calls or not turn.tool_calls):
            kept.append(msgspec.structs.replace(turn, tool_calls=calls))
    return kept


def _is_failure(turn: Turn) -> bool:
    return turn.from_ == "tool" and is_failure(turn.value)


def estimated_tokens(example: Example) -> float:
    """Return about how many tokens the conversation and its tool schemas have, without a tokenizer."""
    texts = [example.tools.text]
    for turn in example.turns:
        texts += [turn.value, turn.reasoning, *(call.name + call.arguments for call in turn.tool_calls)]
    return sum(len(text.encode()) for text in texts) / BYTES_A_TOKEN


def _identity(example: Example, kind: str) -> bytes:
    """Return what equal rows have in common: the prompt, or every word of the conversation (call ids apart)."""
    if kind == "prompts":
        return bytes.fromhex(example.row.prompt_key)[:DIGEST_BYTES]
    words = [
        (turn.from_, turn.value, turn.reasoning, turn.name, [(call.name, call.arguments) for call in turn.tool_calls])
        for turn in example.turns
    ]
    return blake2b(msgspec.json.encode(words), digest_size=DIGEST_BYTES).digest()
