"""Container images for tests, made of this machine's own programs: no registry, no engine needed."""
