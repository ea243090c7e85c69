"""Facts about versions of Kubernetes and Gardener, from their own sources.

Each module has one table and the question that it answers. Not for: what to do about the answer.
"""
