"""MCP servers for tests: one of the standard library alone, and one of the SDK over HTTP."""
