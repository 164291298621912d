"""The file of MCP servers: what is in it, and what of it cannot work here."""

import os
import re
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from trajectile.errors import UserError
from trajectile.tools.distributions import MCP_PREFIX

NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
KEYS = ("command", "args", "env", "url", "headers", "where")
# Keys of the usual form that say nothing here.
IGNORED = ("type", "description", "autoApprove", "alwaysAllow")
HOST, SANDBOX = "host", "sandbox"
# What servers on the host get of the environment. Nothing of ours: keys are among the rest.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
SECRET_CHARACTERS = 8  # shorter values are parts of other words
INSTALL = "the package mcp is missing: pip install 'trajectile[mcp]'"


@dataclass(frozen=True)
class Server:
    """How an MCP server is reached: `url` and `headers` over HTTP, else `command`, `args` and `env` by its stdio.

    Values are as the file has them, with `${NAME}` for a variable of the environment.
    """

    name: str
    command: str
    args: tuple[str, ...]
    env: dict[str, str]
    url: str
    headers: dict[str, str]
    where: str

    @property
    def toolset(self) -> str:
        return f"{MCP_PREFIX}{self.name}"

    @property
    def variables(self) -> list[str]:
        """The variables of the environment that it needs."""
        texts = [self.url, *self.env.values(), *self.headers.values()]
        return sorted({name for text in texts for name in PLACEHOLDER.findall(text)})

    @property
    def secrets(self) -> list[str]:
        """What these variables hold, the longest first; not what is too short or too usual to be a secret."""
        values = (os.environ.get(name, "") for name in self.variables if name not in INHERITED)
        return sorted((value for value in values if len(value) >= SECRET_CHARACTERS), key=len, reverse=True)

    def lacks(self) -> str:
        """What it lacks on this machine, in a few words, "" where nothing."""
        if find_spec("mcp") is None:
            return INSTALL
        if unset := [name for name in self.variables if not os.environ.get(name)]:
            return f"{', '.join(unset)} is not set in the environment; mcp_servers asks for it"
        if self.where == HOST and self.command and not shutil.which(self.command):
            return f"mcp_servers: there is no command {self.command!r} on this machine"
        return ""


def filled_in(text: str) -> str:
    """A value with its placeholders replaced; KeyError for a variable that is not set."""
    return PLACEHOLDER.sub(lambda found: os.environ[found[1]], text)


def read_servers(file: str) -> dict[str, Server]:
    """The servers of a file, by name, none where `file` is empty; a UserError says what is wrong in it."""
    if not file:
        return {}
    try:
        data = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"mcp_servers: {file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"mcp_servers: {file}: {error}") from None
    entries = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise UserError(f'mcp_servers: {file}: expected {{"mcpServers": {{name: {{command or url, …}}}}}}')
    return {str(name): _server(file, str(name), entry) for name, entry in entries.items()}


def _server(file: str, name: str, entry: Any) -> Server:
    if not isinstance(entry, dict):
        raise UserError(f"mcp_servers: {file}: server {name!r} is no mapping")
    args = entry.get("args") or []
    server = Server(
        name,
        command=entry.get("command") or "",
        args=tuple(args) if isinstance(args, list) else (args,),
        env=entry.get("env") or {},
        url=entry.get("url") or "",
        headers=entry.get("headers") or {},
        where=entry.get("where") or HOST,
    )
    if problem := _problem(server, [str(key) for key in entry]):
        raise UserError(f"mcp_servers: {file}: server {name!r}: {problem}")
    return server


def _problem(server: Server, keys: list[str]) -> str:
    unknown = [key for key in keys if key not in KEYS + IGNORED]
    if not NAME.fullmatch(server.name):
        return "a name is of up to 32 letters, digits, _ and -"
    if unknown:
        return f"{', '.join(unknown)} is not known; a server takes {', '.join(KEYS)}"
    if not _is_text(server.command, server.url, *server.args):
        return "command, args and url are texts"
    if not all(isinstance(each, dict) and _is_text(*each, *each.values()) for each in (server.env, server.headers)):
        return "env and headers map names to texts"
    if bool(server.command) == bool(server.url):
        return "it takes either a command or a url"
    if server.url and urlsplit(server.url).scheme not in ("http", "https"):
        return "url must begin with http:// or https://"
    if server.where not in (HOST, SANDBOX) or (server.url and server.where == SANDBOX):
        return f"where is {HOST} or, for a command, {SANDBOX}"
    return _misplaced(server)


def _misplaced(server: Server) -> str:
    if any(PLACEHOLDER.search(text) for text in (server.command, *server.args)):
        return "command and args can be seen by everybody on the machine; put ${…} into env"
    if server.where == SANDBOX and server.variables:
        return "${…} would show the model what the environment holds; run it with where: host"
    return ""


def _is_text(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
