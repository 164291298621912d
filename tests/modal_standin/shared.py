"""The one stand-in of a test process: the SDK keeps its first connection, so there cannot be two."""

import atexit
import importlib.util
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trajectile.sandbox.local import isolation

if TYPE_CHECKING:
    from modal_standin.server import Standin

ADDRESS = "TRAJECTILE_TEST_MODAL"


@cache
def problem() -> str:
    """Say why there can be no stand-in, "" where there can."""
    if not importlib.util.find_spec("modal"):
        return "the extra `modal` is not installed"
    if problem := isolation.bwrap_problem():
        return f"the stand-in's sandboxes need bubblewrap: {problem}"
    return ""


@cache
def running() -> "Standin":
    """Start the stand-in, and let the SDK of this process, and of those it starts, find it."""
    from modal_standin.server import Standin

    folder = Path(tempfile.mkdtemp(prefix="trajectile-modal-"))
    server = Standin(folder)
    server.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    account = {"SERVER_URL": server.url, "TOKEN_ID": "known", "TOKEN_SECRET": "secret"}
    os.environ.update({f"MODAL_{name}": value for name, value in account.items()}, **{ADDRESS: server.url})
    return server


def is_running() -> bool:
    """Whether this process, or the one that started it, has a stand-in."""
    return ADDRESS in os.environ
