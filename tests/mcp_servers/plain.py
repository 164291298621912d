"""An MCP server over standard input and output, of the standard library alone, that misbehaves as its argument says."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
TEXT = {"type": "string"}
RESULTS = {
    "image": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}],
    "resource": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}],
    "blob": [{"type": "resource", "resource": {"uri": "file:///b", "blob": "aGVsbG8="}}],
    "link": [{"type": "resource_link", "uri": "file:///c", "name": "c", "description": "a file"}],
    "empty": [],
}


def schema(**properties):
    return {"type": "object", "properties": properties}


def tools():
    yield {"name": "echo", "description": "Say it again.", "inputSchema": {**schema(text=TEXT), "required": ["text"]}}
    yield {"name": "env", "inputSchema": schema(name=TEXT)}
    yield {"name": "big", "inputSchema": schema(bytes={"type": "integer"})}
    for name in (*RESULTS, "fail", "structured", "slow", "die", "noise", "child", "nonsense"):
        yield {"name": name, "inputSchema": {"type": "object"}}
    yield {"name": "dotted.name", "inputSchema": schema(text={"type": "string", "pattern": "\\p{L}+"})}
    if MODE == "bad_schema":
        yield {"name": "odd", "inputSchema": schema(text={"type": "text"})}
    if MODE == "lost_reference":
        yield {"name": "odd", "inputSchema": schema(text={"$ref": "#/$defs/gone"})}
    if MODE == "equal_names":
        yield {"name": "dotted_name", "inputSchema": schema()}
    if MODE == "more":
        yield {"name": "more", "inputSchema": schema()}


def listed(cursor):
    """Two pages."""
    found = [] if MODE == "no_tools" else list(tools())
    return {"tools": found[5:]} if cursor else {"tools": found[:5], **({"nextCursor": "x"} if found else {})}


def called(name, given):
    if name == "die":
        os._exit(3)
    if name == "slow":
        time.sleep(60)
    if name == "child":
        subprocess.Popen(["sleep", "4177"])
    if name == "noise":
        print("this is no message", flush=True)
        sys.stderr.write("x" * 1_000_000)
        sys.stderr.flush()
    if name == "nonsense":
        return {"content": 5}
    if name == "structured":
        return {"content": [], "structuredContent": {"a": 1}}
    if name == "fail":
        return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}
    if name in RESULTS:
        return {"content": RESULTS[name]}
    text = {"env": os.environ.get(given.get("name", ""), "unset"), "big": "é" * given.get("bytes", 0)}
    return {"content": [{"type": "text", "text": text.get(name, given.get("text", "done"))}]}


def answer(method, params):
    if method == "initialize":
        about = {"name": "plain", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return listed(params.get("cursor"))
    if method == "tools/call":
        return called(params["name"], params.get("arguments", {}))
    return None


def main():
    if "MARK" in os.environ:
        with Path(os.environ["MARK"]).open("a") as mark:
            mark.write("begun\n")
    if MODE == "crash":
        sys.exit(f"no luck, {os.environ.get('TOKEN')}")
    if MODE == "hang":
        time.sleep(60)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params", {}))
            told = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)


main()
