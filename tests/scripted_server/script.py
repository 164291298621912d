"""What the server answers: rules, replies and faults, read from JSON or YAML."""

import hashlib
import random
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson
import yaml


@dataclass
class Reply:
    """One assistant turn; a tool call is `{name, arguments (object or text), id (made up where missing)}`."""

    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str = ""
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        return not self.tool_calls


@dataclass
class Fault:
    """One misbehaviour (see faults.py), on the calls numbered in `on_calls` (from 1, per prompt), on the first `times`
    calls, or with `probability`; on every call where none is given."""

    kind: str
    on_calls: list[int] = field(default_factory=list)
    times: int = 0
    probability: float = 1.0
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    seconds: float = 3600.0

    def strikes(self, seed: int, prompt: str, call: int) -> bool:
        if self.on_calls:
            return call in self.on_calls
        if self.times:
            return call <= self.times
        return self.probability >= 1 or random.Random(f"{seed} {prompt} {call}").random() < self.probability


@dataclass
class Rule:
    """The replies to the prompts that `match` (exact text) or `regex` (searched) finds.

    Reply number n answers a request with n assistant turns after the prompt, the last reply all later ones; `offset`
    turns of a conversation that starts with several are not counted. Without replies the default answers.
    """

    match: str | None = None
    regex: str | None = None
    replies: list[Reply] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    latency: float | None = None
    offset: int = 0


@dataclass
class Script:
    """Everything a server does. `steps` is the number of tool calls of the default reply before its answer;
    `jitter` is the share by which `latency` (s) varies; `models` and `api_key` are enforced where given.
    `keep_requests` keeps the bodies of chat requests for who asks."""

    rules: list[Rule] = field(default_factory=list)
    steps: int = 1
    latency: float = 0.0
    jitter: float = 0.0
    seed: int = 0
    models: list[str] = field(default_factory=list)
    api_key: str = ""
    reasoning_style: str = "reasoning_content"
    keep_requests: bool = False

    def __post_init__(self) -> None:
        self._exact = {rule.match: rule for rule in reversed(self.rules) if rule.match is not None}
        self._regex = [(re.compile(rule.regex), rule) for rule in self.rules if rule.regex is not None]
        self._default = Rule()

    def rule_for(self, prompt: str) -> Rule:
        if rule := self._exact.get(prompt):
            return rule
        return next((rule for regex, rule in self._regex if regex.search(prompt)), self._default)

    def reply_for(self, rule: Rule, prompt: str, turn: int) -> Reply:
        turn = max(0, turn - rule.offset)
        if rule.replies:
            return rule.replies[min(turn, len(rule.replies) - 1)]
        return default_reply(prompt, turn, self.steps)


def default_reply(prompt: str, turn: int, steps: int) -> Reply:
    """Echo a digest of the prompt in the terminal, `steps` times, then answer with it."""
    digest = short_digest(prompt)
    if turn < steps:
        call = {"name": "terminal", "arguments": {"command": f"echo {digest} {turn}"}}
        return Reply(reasoning=f"Step {turn + 1}: I echo {digest}.", tool_calls=[call])
    return Reply(text=f"The answer is {digest}.", reasoning=f"The terminal printed {digest}, so I am done.")


def short_digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:12]


def read_script(path: Path) -> Script:
    """Read a script file, JSON or YAML: a mapping of Script's fields, or its list of rules alone."""
    if path.suffix == ".json":
        return make_script(orjson.loads(path.read_bytes()))
    return make_script(yaml.safe_load(path.read_text(encoding="utf-8")))


def make_script(data: Any) -> Script:
    """Build a script from plain data; raises TypeError for a field that does not exist."""
    known: dict[str, Any] = dict(data) if isinstance(data, dict) else {"rules": data or []}
    known["rules"] = [_rule(rule) for rule in known.get("rules", [])]
    return Script(**known)


def _rule(data: dict[str, Any]) -> Rule:
    replies = [Reply(**reply) for reply in data.get("replies", [])]
    faults = [make_fault(fault) for fault in data.get("faults", [])]
    return Rule(**{**data, "replies": replies, "faults": faults})


def make_fault(data: dict[str, Any]) -> Fault:
    unknown = set(data) - {f.name for f in fields(Fault)}
    if unknown:
        raise TypeError(f"a fault has no {', '.join(sorted(unknown))}")
    return Fault(**data)
