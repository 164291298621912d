"""Toolsets `mcp:<name>`: the tools of MCP servers, on this machine, in the prompt's sandbox, or over HTTP."""
