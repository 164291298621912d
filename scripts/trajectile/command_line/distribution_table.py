"""The distributions as a table for people."""

from rich.console import Console
from rich.table import Table

from trajectile.configuration.settings import Settings
from trajectile.planning.offer import lacking, load_distributions
from trajectile.tools.distributions import missing
from trajectile.tools.registry import load_toolsets

PIPED_WIDTH = 120


def print_distributions(settings: Settings) -> None:
    """Print each distribution with its chances in percent, and the toolsets that it lacks here."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH)
    table = Table("distribution", "for", "toolsets and their chance in %", "missing here")
    toolsets = load_toolsets(settings)
    distributions = load_distributions(settings, toolsets)
    lacks = lacking(distributions.values(), toolsets, settings)
    for name, distribution in distributions.items():
        chances = ", ".join(f"{toolset} {chance:g}" for toolset, chance in distribution.chances.items())
        table.add_row(name, distribution.purpose, chances, ", ".join(missing(distribution, lacks)) or "-")
    console.print(table)
    console.print("One with missing toolsets needs missing_toolsets: drop, which leaves them out.")
