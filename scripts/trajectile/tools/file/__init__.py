"""Toolset `file`: read, write, patch and search files through the sandbox."""
