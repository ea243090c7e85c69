"""Copies of a cluster's objects: list and watch, indexes, and caches that several readers share."""
