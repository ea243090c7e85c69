"""`pergola extension`: runs and registers extensions."""
