"""run.json: what a run is. Its frozen settings, so that one run never mixes two kinds of rows unasked."""

import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from trajectile.configuration.frozen import frozen_settings, settings_digest
from trajectile.configuration.settings import Settings
from trajectile.errors import UserError
from trajectile.run_folder.paths import RunFolder, write_atomic

MCP_TOOLS, CHANCES = "mcp_tools", "chances"
SETTLED_LATER = (MCP_TOOLS, CHANCES)  # fixed too, but known only once it was seen what works
HIDDEN = frozenset({"ephemeral_system_prompt"})
DISTRIBUTIONS = ("trajectile", "snakemake", "openai")


class ServerTool(msgspec.Struct, frozen=True):
    """A tool of an MCP server: the name the model calls it by, the server's own name for it, and its schema."""

    name: str
    server_name: str
    description: str
    parameters: dict[str, Any]


class Identity(msgspec.Struct, kw_only=True):
    """The content of run.json.

    `frozen` are the settings that shape rows; `history` maps each settings_digest that rows may carry to its settings.
    `tools`, `toolsets` and `tool_schemas` are of all tools the run could ever offer, `chances` the percentages of the
    toolsets on offer, `images` the digests of the images that prompts run in, `mcp_tools` what MCP servers offered, by
    server.
    """

    run_name: str
    created: str
    frozen: dict[str, Any]
    settings_digest: str
    history: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    chances: dict[str, float]
    dropped_toolsets: list[str]
    tools: list[str]
    toolsets: dict[str, list[str]] = {}
    tool_schemas: list[dict[str, Any]]
    dataset: dict[str, Any]
    isolation: str = ""
    images: dict[str, str] = {}
    mcp_tools: dict[str, list[ServerTool]] = {}
    versions: dict[str, str]
    git_commit: str


def read_identity(folder: RunFolder) -> Identity | None:
    """Return run.json, None where the run has not begun."""
    try:
        return msgspec.json.decode(folder.run_json.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise UserError(_in_the_way(folder)) from None
    except msgspec.DecodeError as error:
        raise UserError(f"{folder.run_json} is damaged ({error}). Restore it, or choose another run_name.") from None


def _in_the_way(folder: RunFolder) -> str:
    if folder.root.exists():
        return f"run_name: {folder.root} is a file. Choose another name for the run."
    return f"{folder.root.parent} is a file, and the folders of runs are to be in it. Move it away, or work elsewhere."


def write_identity(folder: RunFolder, identity: Identity) -> None:
    write_atomic(folder.run_json, msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n")


def record_images(folder: RunFolder, digests: dict[str, str]) -> None:
    """Add to run.json which images prompts run in."""
    identity = read_identity(folder)
    if identity and not digests.items() <= identity.images.items():
        identity.images |= digests
        write_identity(folder, identity)


def new_identity(
    settings: Settings,
    before: Identity | None,
    *,
    chances: dict[str, float],
    dropped: list[str],
    toolsets: dict[str, list[str]],
    tool_schemas: list[dict[str, Any]],
    dataset: dict[str, Any],
    isolation: str,
    mcp_tools: dict[str, list[ServerTool]] | None = None,
) -> Identity:
    """Return run.json for this start of a run; what earlier starts could offer stays known."""
    toolsets = {**(before.toolsets if before else {}), **toolsets}
    now = {_named(schema) for schema in tool_schemas}
    frozen = frozen_settings(settings) | {CHANCES: chances}
    if mcp_tools:
        frozen[MCP_TOOLS] = hashlib.sha256(msgspec.json.encode(mcp_tools, order="sorted")).hexdigest()
    digest = settings_digest(frozen)
    shown = {name: value for name, value in msgspec.structs.asdict(settings).items() if name not in HIDDEN}
    return Identity(
        run_name=settings.run_name,
        created=before.created if before else datetime.now(UTC).isoformat(timespec="seconds"),
        frozen=frozen,
        settings_digest=digest,
        history={**(before.history if before else {}), digest: frozen},
        settings=shown,
        chances=chances,
        dropped_toolsets=dropped,
        tools=sorted({*(before.tools if before else ()), *(tool for tools in toolsets.values() for tool in tools)}),
        toolsets=toolsets,
        tool_schemas=tool_schemas + [schema for schema in _schemas(before) if _named(schema) not in now],
        dataset=dataset,
        isolation=isolation,
        images=before.images if before else {},
        mcp_tools={**(before.mcp_tools if before else {}), **(mcp_tools or {})},
        versions={"python": platform.python_version(), **_versions()},
        git_commit=_git_commit(),
    )


def _schemas(identity: Identity | None) -> list[dict[str, Any]]:
    return identity.tool_schemas if identity else []


def _named(schema: dict[str, Any]) -> str:
    name: str = schema["function"]["name"]
    return name


def _versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "from source"
    return found


def _git_commit() -> str:
    """Return the commit of the checkout that this code lies in, "" where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
