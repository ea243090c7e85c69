"""Facts about versions of Gardener, taken from its sources.

Each module has one table and functions that query it. Not for: policy based on these facts.
"""
