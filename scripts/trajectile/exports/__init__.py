"""The result of a run in the formats of trainers, one file a format."""
