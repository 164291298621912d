"""Sandboxes in containers of apptainer or singularity, which this process starts."""
