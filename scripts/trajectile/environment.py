"""What programs that this process starts get of its environment."""

import os
from collections.abc import Collection

TEMPORARY = "TMPDIR"
# Playwright's driver takes it from the environment alone, so a browser's start changes it until the driver runs.
_AT_BEGIN = os.environ.get(TEMPORARY)


def passed(names: Collection[str]) -> dict[str, str]:
    """Those of the variables that are set; TMPDIR is the one that this process began with."""
    found = {name: os.environ[name] for name in names if name != TEMPORARY and name in os.environ}
    return found if _AT_BEGIN is None or TEMPORARY not in names else {**found, TEMPORARY: _AT_BEGIN}
