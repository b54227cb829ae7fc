"""Rows: where they come from, how they are checked, split, kept, and put in order."""
