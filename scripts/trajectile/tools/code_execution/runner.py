"""Runs a script inside a sandbox. This file is handed to the sandbox's own python3, 3.6 or newer, as text.

Standard input brings a line of JSON {token, code, tools: {name: argument names}}, then a line of JSON for each answer.
Standard output carries what the script prints, and frames: NUL, token, "+" or "." (more of it follows, or not), a part
of a request in ASCII JSON, newline. Each frame is one write that a pipe takes whole, so that nothing gets in between.
"""

import sys

# A file of the script's own, say json.py, must not stand in for a library here.
_path = sys.path[:]
sys.path[:] = [entry for entry in _path if entry]

import json  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import threading  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
from typing import Any, Callable, NoReturn  # noqa: E402, UP035

sys.path[:] = _path

FRAME_BYTES = 3000
MODULE = "agent_tools"
NAME = "<script>"
FORKED = (
    "only the process of the script itself, with its threads, can call tools, and this is a fork of it: let forks "
    "return what they have to the script, and call there"
)


class Host:
    """The script's end of the channel; programs that it starts have no descriptor of it, forks of it may not call."""

    def __init__(self) -> None:
        self.answers = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self.requests = os.dup(1)
        self.lock = threading.Lock()
        self.pid = os.getpid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.given = json.loads(self.answers.readline())

    def send(self, request: "dict[str, Any]") -> None:
        text = json.dumps(request).encode("ascii")
        parts = [text[at : at + FRAME_BYTES] for at in range(0, len(text), FRAME_BYTES)]
        for number, part in enumerate(parts, 1):
            mark = b"." if number == len(parts) else b"+"
            frame = b"\0" + self.given["token"].encode("ascii") + mark + part + b"\n"
            while frame:
                frame = frame[os.write(self.requests, frame) :]

    def call(self, name: str, arguments: "dict[str, Any]") -> Any:
        if os.getpid() != self.pid:
            raise RuntimeError(FORKED)
        with self.lock:
            sys.stdout.flush()
            self.send({"tool": name, "arguments": arguments})
            line = self.answers.readline()
            if not line:
                os._exit(1)  # the time is up
        answer = json.loads(line)
        if "refused" in answer:
            raise RuntimeError(answer["refused"])
        return decoded(answer["result"])


def decoded(result: str) -> Any:
    """JSON objects and arrays as such, everything else as text."""
    try:
        data = json.loads(result)
    except ValueError:
        return result
    return data if isinstance(data, (dict, list)) else result


def function(host: Host, name: str, parameters: "list[str]") -> "Callable[..., Any]":
    def tool(*values: Any, **arguments: Any) -> Any:
        if len(values) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments, {len(values)} were given")
        positional = {parameters[place]: value for place, value in enumerate(values)}
        return host.call(name, {**positional, **arguments})

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = f"{name}({', '.join(parameters)})"
    return tool


def module(host: Host) -> types.ModuleType:
    made = types.ModuleType(MODULE, "The tools of this conversation.")
    tools = {name: function(host, name, parameters) for name, parameters in host.given["tools"].items()}
    vars(made).update(tools, __all__=list(tools))
    return made


def run(host: Host) -> NoReturn:
    """Run the script and exit as it does; its own frames alone are shown of a traceback."""
    code = host.given["code"]
    sys.modules[MODULE] = module(host)
    sys.argv = [NAME]
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(code, NAME, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        sys.stdout.flush()
        own = error.__traceback__ and error.__traceback__.tb_next
        traceback.print_exception(type(error), error, own)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    channel = Host()
    channel.send({"started": True})
    run(channel)
