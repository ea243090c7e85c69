"""The nouns: objects, marks, conditions, and the types of our own API groups.

Not for: reading from or writing to a cluster.
"""
