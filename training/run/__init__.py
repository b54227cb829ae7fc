"""The run folder and the supervisor: everything that is known of a run, on disk, and the process that watches a gang."""
