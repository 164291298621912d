"""One prompt, from its row to its trajectory."""
