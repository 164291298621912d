"""What is owed, how it is cut into shards, and what a start prepares."""
