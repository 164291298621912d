"""Which settings a run goes on with where those of this start are not those that it was begun with."""

import json
import re
from typing import Any

import msgspec

from trajectile.configuration.frozen import frozen_settings
from trajectile.configuration.settings import Settings
from trajectile.errors import UserError
from trajectile.run_folder.identity import SETTLED_LATER, Identity
from trajectile.run_folder.paths import RunFolder

ENDPOINT = frozenset({"base_url", "serve_command"})  # what frozen base_url_host is made of
DIGEST = re.compile(r"[0-9a-f]{64}")
CHOICE = "another run_name, or set settings_change to run (use the run's own) or keep (use the new ones)."
Difference = tuple[str, Any, Any]  # a setting, its value in the run, and its value now


def settle(settings: Settings, identity: Identity | None) -> Settings:
    """Return the settings that a run goes on with, as `settings_change` says; refuse those that would mix rows."""
    if identity is None:
        return settings
    differences = _differences(settings, identity)
    if not differences or settings.settings_change == "keep":
        return settings
    if settings.settings_change == "run":
        return _with_runs_own(settings, identity)
    raise UserError(_refusal(settings.run_name, differences))


def _refusal(run_name: str, differences: list[Difference]) -> str:
    lines = [f"  {name}: {_shown(theirs)} in the run, {_shown(ours)} now" for name, theirs, ours in differences]
    lacks_prompt = any(name == "ephemeral_system_prompt" and not ours for name, _, ours in differences)
    advice = "Give the same ephemeral_system_prompt again, choose" if lacks_prompt else "Choose"
    return "\n".join([f"run {run_name} was begun with other settings:", *lines, f"{advice} {CHOICE}"])


def _shown(value: Any) -> str:
    is_digest = isinstance(value, str) and DIGEST.fullmatch(value)
    return f"SHA-256 {value[:12]}…" if is_digest else json.dumps(value, ensure_ascii=False)


def _differences(settings: Settings, identity: Identity) -> list[Difference]:
    ours = frozen_settings(settings)
    fixed = {name: theirs for name, theirs in identity.frozen.items() if name not in SETTLED_LATER}
    found = [(name, theirs, ours.get(name)) for name, theirs in fixed.items() if theirs != ours.get(name)]
    before = identity.settings.get("max_samples")
    if settings.max_samples is not None and (before is None or settings.max_samples < before):
        found.append(("max_samples", before, settings.max_samples))
    return found


def _with_runs_own(settings: Settings, identity: Identity) -> Settings:
    differing = {name for name, _, _ in _differences(settings, identity)}
    names = differing | (ENDPOINT if "base_url_host" in differing else set())
    names &= identity.settings.keys()
    own = msgspec.structs.replace(settings, **{name: identity.settings[name] for name in names})
    lost = [name for name, _, _ in _differences(own, identity)]
    if lost:
        raise UserError(
            f"settings_change: run needs the run's own {', '.join(lost)} given again, as it was: "
            f"{RunFolder(settings.folder).run_json} keeps no copy"
        )
    return own
