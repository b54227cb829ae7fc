"""Runs a training script of somebody's own as a rank: as `python script.py` would, and yet supervised."""
