"""A real node: containerd and kubelet in separate namespaces, which requires root.

The sandbox's control plane runs in the same namespaces. The machine sees one loopback port for the
API server; nothing else changes there, and no packet leaves. Not for production.

`requirements` checks the machine, `enclosure` and `inside` create the namespaces, `components` and
`configuration` define flags and files of the programs, `network` connects pods and enforces
NetworkPolicies, `addons` lists the pods of every node.
"""
