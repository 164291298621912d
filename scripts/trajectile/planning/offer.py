"""What a run offers its prompts: the distribution, less what cannot work here, and the tools of its toolsets."""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trajectile.configuration.settings import Settings
from trajectile.errors import UserError
from trajectile.planning.settling import CHOICE
from trajectile.run_folder.identity import Identity, ServerTool
from trajectile.tools.distributions import MCP_PREFIX, Distribution, choose, load, missing, offered
from trajectile.tools.registry import Toolsets, load_toolsets, problems, tools_of
from trajectile.tools.tool import Tool

DISTRIBUTIONS_FILE = Path(__file__).parents[3] / "config" / "distributions.yaml"
Answers = Mapping[str, Sequence[ServerTool] | str]


class Offer(NamedTuple):
    """The distribution that prompts are drawn from, the toolsets left out of it with the reasons, and all toolsets.

    `mcp_tools` are the tools of its MCP servers, as far as they were ever asked.
    """

    distribution: Distribution
    dropped: dict[str, str]
    toolsets: Toolsets
    mcp_tools: dict[str, list[ServerTool]]

    def tools(self, names: Iterable[str] | None = None) -> list[Tool]:
        """The tools of some toolsets, of all on offer without `names`."""
        return tools_of(self.distribution.chances if names is None else names, self.toolsets)

    @property
    def servers(self) -> list[str]:
        """The MCP servers whose tools are on offer."""
        return [name.removeprefix(MCP_PREFIX) for name in self.distribution.chances if name.startswith(MCP_PREFIX)]


def make_offer(settings: Settings, identity: Identity | None = None, answers: Answers | None = None) -> Offer:
    """Reduce the distribution to the toolsets that work here; a UserError lists what is missing.

    `answers` are the tools of MCP servers that were asked by now, or why they have none.
    """
    answers = answers or {}
    mcp_tools = dict(identity.mcp_tools) if identity else {}
    mcp_tools |= {name: list(tools) for name, tools in answers.items() if not isinstance(tools, str)}
    toolsets = load_toolsets(settings, mcp_tools)
    distributions = load_distributions(settings, toolsets)
    lacks = lacking(distributions.values(), toolsets, settings)
    lacks |= {f"{MCP_PREFIX}{name}": lack for name, lack in answers.items() if isinstance(lack, str)}
    chosen = offered(distributions, settings.distribution, lacks, drop=settings.missing_toolsets == "drop")
    dropped = {name: lacks[name] for name in missing(choose(distributions, settings.distribution), lacks)}
    return Offer(_settled(chosen, identity, dropped, settings.settings_change), dropped, toolsets, mcp_tools)


def earlier_offer(settings: Settings, identity: Identity) -> Offer:
    """What the run offered when it was started last; whether that works here matters to nobody who runs no prompt."""
    dropped = dict.fromkeys(identity.dropped_toolsets, "it did not work when the run was started last")
    toolsets = load_toolsets(settings, identity.mcp_tools)
    return Offer(Distribution(settings.distribution, identity.chances), dropped, toolsets, identity.mcp_tools)


def load_distributions(settings: Settings, toolsets: Toolsets) -> dict[str, Distribution]:
    """The distributions of config/distributions.yaml and of the user's own file, which wins."""
    own = load(Path(settings.distributions_file), toolsets) if settings.distributions_file else {}
    return load(DISTRIBUTIONS_FILE) | own


def lacking(distributions: Iterable[Distribution], toolsets: Toolsets, settings: Settings) -> dict[str, str]:
    """What each toolset of these distributions lacks here; those that work are left out."""
    named = {name for distribution in distributions for name in distribution.chances}
    unknown = {name: _unknown(name) for name in sorted(named - toolsets.keys())}
    return unknown | problems(toolsets, settings)


def _unknown(toolset: str) -> str:
    if toolset.startswith(MCP_PREFIX):
        return f"mcp_servers names no server {toolset.removeprefix(MCP_PREFIX)!r}"
    return "there is no such toolset"


def _settled(chosen: Distribution, identity: Identity | None, dropped: Container[str], change: str) -> Distribution:
    """The chances that a run goes on with, as `settings_change` says, where they were changed since it began.

    What did not work then and does now, or the other way round, was not changed by the user.
    """
    if identity is None or identity.frozen.get("distribution") != chosen.name or change == "keep":
        return chosen
    now, before = chosen.chances, identity.chances
    differing = [
        name
        for name in dict.fromkeys([*before, *now])
        if now.get(name) != before.get(name) and name not in dropped and name not in identity.dropped_toolsets
    ]
    if differing and change == "refuse":
        raise UserError(
            f"distribution {chosen.name!r} had other chances when the run was begun:\n"
            + "\n".join(f"  {name}: {before.get(name, 0):g} in the run, {now.get(name, 0):g} now" for name in differing)
            + f"\nChoose {CHOICE}"
        )
    settled = now | {name: before.get(name, 0) for name in differing}
    return Distribution(chosen.name, {name: chance for name, chance in settled.items() if chance}, chosen.purpose)
