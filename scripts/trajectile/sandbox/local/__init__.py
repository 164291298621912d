"""Sandboxes on this machine: a scratch folder for each, and what stands between its commands and everything else."""
