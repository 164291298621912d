"""What web_search can ask, a file each."""
