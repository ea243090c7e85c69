"""Cluster infrastructure that another system manages: Cluster API's contract (spec 50).

For authors of InfraCluster providers: `predicate` (objects to leave alone), `mapping` (from a
Cluster to its InfraCluster), `webhook` (keeps the annotation in place), `contract` (the fields that
core reads, in both generations), `conditions`. The external manager uses the same parts.

Not for machines, control planes and bootstrap, which the annotation does not affect.
"""
