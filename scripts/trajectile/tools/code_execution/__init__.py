"""Toolset `code_execution`: Python inside the sandbox that may call the prompt's other tools."""
