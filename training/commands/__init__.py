"""One file per subcommand of `ganger`: parse, call, print. What a command does lives elsewhere."""
