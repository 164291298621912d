"""Sandboxes in containers of Docker, or of podman through the same API."""
