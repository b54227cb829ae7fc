"""One package per framework: the only home of heavy imports. Runs inside the rank process, in the engine's environment."""
