"""Toolset `image_gen`: a model that draws."""
