"""Tests against a real API server, for this project and for others.

The pytest plugin `pergola` is installed with the package and offers the fixtures of
`pergola.testing.plugin`. It starts nothing, and imports almost nothing, until a test uses one.
"""
