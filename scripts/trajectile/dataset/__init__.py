"""Reading prompts from any dataset that people have."""
