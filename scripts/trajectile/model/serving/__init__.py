"""Model servers that shards start on their machine and share: found through a folder, kept by their users."""
