"""Runs on a real SLURM, as its users start them, and what can happen to them there."""
