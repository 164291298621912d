"""A server that answers Modal's SDK as Modal does, and runs its sandboxes on this machine.

Built on the SDK's own protocol classes; a sandbox is a bubblewrap, an exec in it a real process.
"""
