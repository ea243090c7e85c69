"""Controllers: the queue, the workers, the unit that a process runs, and Events."""
