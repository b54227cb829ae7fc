"""One package per framework: the only home of heavy imports. Runs in the rank process, in the engine's environment."""
