"""Toolset `web`: search the web and read pages."""
