"""One API server: the only room that speaks HTTP to a cluster.

Not for: keeping what was read (that is `runtime.cache`), or knowing what single kinds mean.
"""
