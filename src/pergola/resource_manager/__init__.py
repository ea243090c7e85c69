"""The resource manager: objects in a cluster, kept exactly as ManagedResources describe them.

Not for: serving webhooks' protocol, or anything about clusters other than source and target.
"""
