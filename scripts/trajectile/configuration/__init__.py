"""Settings: their one definition, their types, and what does not go together."""
