"""The checks of places: what a resource manager applies, mutates, approves and refuses."""
