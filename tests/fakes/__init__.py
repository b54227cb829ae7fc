"""Stand-ins for the outside world: a launcher without processes, toy ranks that need the standard library only."""
