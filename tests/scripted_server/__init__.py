"""A model server that answers from a script: real HTTP, deterministic, and misbehaving on request."""
