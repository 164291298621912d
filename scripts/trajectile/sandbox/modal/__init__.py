"""Sandboxes in the cloud of Modal."""
