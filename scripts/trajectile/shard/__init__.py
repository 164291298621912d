"""run_batch's engine: all prompts of one shard."""
