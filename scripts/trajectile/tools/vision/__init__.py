"""Toolset `vision`: a model that looks at images."""
