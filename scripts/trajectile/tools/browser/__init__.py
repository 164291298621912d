"""Toolset `browser`: a real Chromium, seen as an accessibility tree whose elements have references."""
