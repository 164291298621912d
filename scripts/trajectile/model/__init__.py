"""Talking to models: the client, its manners, and the embedded server."""
