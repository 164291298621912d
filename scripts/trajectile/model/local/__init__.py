"""The embedded model: weights from a small catalogue behind an OpenAI-compatible server on loopback."""
