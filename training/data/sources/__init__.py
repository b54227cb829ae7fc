"""The kinds of data sources, one file each. `training.data.source` chooses between them."""
