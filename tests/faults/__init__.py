"""The fault machine: storms over the real pipeline, from seeds, and what must hold afterwards."""
