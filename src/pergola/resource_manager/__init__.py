"""The resource manager: keeps the objects in a cluster exactly as ManagedResources describe them.

Not for: the webhook protocol, or clusters other than source and target.
"""
