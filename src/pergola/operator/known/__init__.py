"""Facts about versions of Kubernetes and Gardener, taken from their sources.

Each module has one table and functions that query it. Not for: policy based on these facts.
"""
