"""What all step programs share: options that name a run folder, errors in words, a readable log."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trajectile.errors import FatalError, UserError


@contextmanager
def explained() -> Iterator[None]:
    """Print the message of an error that the user can mend and end with status 2, without a traceback."""
    try:
        yield
    except (UserError, FatalError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)


def say(text: str) -> None:
    """Tell the user of a workflow something, beside what Snakemake says."""
    print(f"trajectile: {text}", file=sys.stderr)


def log_to_stderr(verbose: bool = False) -> None:
    """Log one line an event to standard error, with the time."""
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("trajectile").setLevel(level)
