"""The run folder and the supervisor: all that is known of a run, on disk, and the process that watches a gang."""
