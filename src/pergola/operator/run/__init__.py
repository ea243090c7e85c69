"""What the tasks of a Garden's flows need: the observed landscape, deploying, and waiting."""
