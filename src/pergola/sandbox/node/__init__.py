"""A real node: containerd and kubelet in namespaces of their own, where root is available.

The control plane of such a sandbox runs in the same namespaces. The machine sees one loopback port
for the API server; nothing else changes there, and no packet leaves. Not for production.

`requirements` says what a machine must have, `enclosure` and `inside` make the namespaces,
`components` and `configuration` say how the programs are started, `addons` is what runs as pods.
"""
