"""What every sandbox promises, tested against every kind of sandbox that this machine has."""
