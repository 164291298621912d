"""The end of Modal sandboxes that a dead owner left."""

from collections.abc import Mapping

import modal
from modal.exception import Error, NotFoundError

from trajectile.errors import FatalError
from trajectile.sandbox.modal.sandbox import APP
from trajectile.sandbox.ownership import owner_of


def terminate_left(tags: Mapping[str, str]) -> int:
    """Terminate the sandboxes with `tags` whose own tags say that their owner is dead; how many. FatalError."""
    try:
        app = modal.App.lookup(APP, create_if_missing=True)
        found = list(modal.Sandbox.list(app_id=app.app_id, tags=dict(tags)))
        return sum(_terminate(sandbox) for sandbox in found if owner_of(sandbox.get_tags()).is_dead)
    except Error as error:
        raise FatalError(f"sandbox: modal: {error}") from error


def _terminate(sandbox: modal.Sandbox) -> bool:
    try:
        sandbox.terminate()
    except NotFoundError:
        return False
    return True
