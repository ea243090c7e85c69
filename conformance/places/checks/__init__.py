"""What a resource manager does in a place, each as a `Check`."""
