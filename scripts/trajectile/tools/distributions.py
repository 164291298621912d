"""Toolset distributions: which toolsets a prompt is offered, drawn by chance and the same on every machine."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trajectile.errors import UserError

KNOWN_TOOLSETS = (
    "terminal",
    "file",
    "web",
    "browser",
    "vision",
    "image_gen",
    "tts",
    "code_execution",
    "todo",
)
MCP_PREFIX = "mcp:"


@dataclass(frozen=True)
class Distribution:
    """`chances` is the chance in percent of each toolset, each drawn on its own."""

    name: str
    chances: dict[str, float]
    purpose: str = ""


def load(path: Path, toolsets: Iterable[str] = ()) -> dict[str, Distribution]:
    """The distributions of a YAML file, by name; UserError with the line for what is wrong in it.

    They may name KNOWN_TOOLSETS, MCP servers and `toolsets`.
    """
    known = tuple(dict.fromkeys((*KNOWN_TOOLSETS, *toolsets)))
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {error}") from error
    return {name.value: _distribution(path, name.value, body, known) for name, body in _items(path, root)}


def _distribution(path: Path, name: str, body: yaml.Node, toolsets: Collection[str]) -> Distribution:
    chances: dict[str, float] = {}
    purpose = ""
    for key, value in _items(path, body):
        if key.value == "for":
            purpose = str(value.value)
        elif not is_known(key.value, toolsets):
            known = ", ".join(dict.fromkeys((*toolsets, f"{MCP_PREFIX}<name>")))
            raise _refused(path, key, f"{name}: unknown toolset {key.value!r}, known are {known}")
        else:
            chances[key.value] = _chance(path, value, f"{name}: {key.value}")
    if not any(chances.values()):
        raise _refused(path, body, f"{name}: no toolset has a chance above 0")
    return Distribution(name, chances, purpose)


def _chance(path: Path, node: yaml.Node, what: str) -> float:
    value: Any = yaml.safe_load(yaml.serialize(node))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise _refused(path, node, f"{what}: the chance must be a number from 0 to 100, not {node.value!r}")
    return float(value)


def _items(path: Path, node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise _refused(path, node, "must be a mapping")
    names = [key.value for key, _ in node.value]
    for position, (key, _) in enumerate(node.value):
        if key.value in names[:position]:
            raise _refused(path, key, f"{key.value!r} is there twice")
    return list(node.value)


def _refused(path: Path, node: yaml.Node | None, message: str) -> UserError:
    line = node.start_mark.line + 1 if node is not None else 1
    return UserError(f"{path}, line {line}: {message}")


def is_known(toolset: str, toolsets: Collection[str]) -> bool:
    return toolset in toolsets or (toolset.startswith(MCP_PREFIX) and toolset != MCP_PREFIX)


def choose(distributions: dict[str, Distribution], name: str) -> Distribution:
    """The distribution of that name; UserError with the accepted names where there is none."""
    if name not in distributions:
        raise UserError(f"unknown distribution {name!r}, accepted are: {', '.join(sorted(distributions))}")
    return distributions[name]


def missing(distribution: Distribution, lacks: Mapping[str, str]) -> list[str]:
    """The toolsets it may draw that lack something."""
    return [name for name, chance in distribution.chances.items() if chance > 0 and name in lacks]


def offered(
    distributions: dict[str, Distribution],
    name: str,
    lacks: Mapping[str, str],
    *,
    drop: bool,
) -> Distribution:
    """The distribution less the toolsets in `lacks`, which maps them to what is missing; UserError unless `drop` allows
    it and something is left."""
    chosen = choose(distributions, name)
    lacking = missing(chosen, lacks)
    left = {toolset: chance for toolset, chance in chosen.chances.items() if chance > 0 and toolset not in lacks}
    if lacking and not (drop and left):
        works = [each for each in sorted(distributions) if not missing(distributions[each], lacks)]
        advice = "\nOr set missing_toolsets: drop to go on without them." if left else ""
        raise UserError(
            f"distribution {name!r} needs toolsets that cannot work here:\n"
            + "".join(f"  {toolset}: {lacks[toolset]}\n" for toolset in lacking)
            + f"Distributions that work now: {', '.join(works) or 'none'}.{advice}"
        )
    return Distribution(name, left, chosen.purpose)


def draw(distribution: Distribution, seed: int, row_key: str, ordinal: int) -> list[str]:
    """The toolsets for one prompt, in the distribution's order: each on its own, at least the likeliest.

    A toolset's draw depends on nothing but the arguments and its name, so leaving one out changes no other.
    """

    def chance(what: str) -> float:
        """A number from 0 up to but not 100."""
        digest = hashlib.sha256(f"{seed}\n{row_key}\n{ordinal}\n{what}".encode()).digest()
        return 100 * (int.from_bytes(digest[:6], "big") / (1 << 48))

    drawn = [name for name, wanted in distribution.chances.items() if chance(f"toolset {name}") < wanted]
    if drawn:
        return drawn
    highest = max(distribution.chances.values())
    likeliest = sorted(name for name, wanted in distribution.chances.items() if wanted == highest)
    return [likeliest[int(chance("likeliest") / 100 * len(likeliest))]]
