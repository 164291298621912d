"""Toolset `todo`: a list that a prompt's agent keeps for itself."""
