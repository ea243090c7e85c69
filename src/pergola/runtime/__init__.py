"""Running controllers: caches, queues, leadership, time, metrics, probes and logs.

Not for: what a controller decides; nothing here knows a kind of object.
"""
