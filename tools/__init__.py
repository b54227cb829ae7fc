"""Programs for people who work with this checkout; not part of the package."""
