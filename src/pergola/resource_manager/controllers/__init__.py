"""The resource manager's controllers, one module or folder each."""
