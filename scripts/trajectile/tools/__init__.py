"""Toolsets: what a model can call, and which of it a prompt is offered."""
