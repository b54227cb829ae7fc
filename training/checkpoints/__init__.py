"""Checkpoints: whole or not there, checked when read, the newest complete one wins."""
