"""Pure decisions about a gang: what a failure is, whether to restart, who is stalled. No clock, no IO."""
