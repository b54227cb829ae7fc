"""Repairs of MXNet for scripts, one a file; `training.script.repairs` says when each is made.

They are no part of the engine for model files, which a script must not have to import.
"""
