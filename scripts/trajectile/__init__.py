"""Trajectile: prompts in, training-ready agent trajectories out."""

__version__ = "0.1.0"
