"""Controllers that more than one process runs.

Not for: what only one product needs.
"""
