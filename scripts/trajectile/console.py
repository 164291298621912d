"""What all programs tell the user beside their output: a line that begins with our name, a readable log."""

import logging
import sys


def say(text: str) -> None:
    """Tell the user of a workflow something, beside what Snakemake says."""
    print(f"trajectile: {text}", file=sys.stderr)


def log_to_stderr(verbose: bool = False) -> None:
    """Log one line an event to standard error, with the time."""
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("trajectile").setLevel(level)
