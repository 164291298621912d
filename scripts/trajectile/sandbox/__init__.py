"""Where tools run: one sandbox a prompt, never reused, always removed."""
