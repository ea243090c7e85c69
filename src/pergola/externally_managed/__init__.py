"""Cluster infrastructure that another system manages: Cluster API's contract for it (spec 50).

For whoever writes an InfraCluster provider: `predicate` (whom to leave alone), `mapping` (from a
Cluster to its InfraCluster), `webhook` (no way back), `contract` (what core reads, in both
generations), `conditions`. The external manager is built of the same parts.

Not for: machines, control planes and bootstrap, which the annotation does not concern.
"""
