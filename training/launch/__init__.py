"""Starts the processes of a gang, one module per backend. A launcher never decides: it starts, tells, signals, ends."""
