"""The parts that kube-apiserver and gardener-apiserver share (spec 20 §15.2, §16.2).

Each module returns the `Part` of one concern: `serving` (etcd, TLS, limits), `audit`, `admission`
and `encryption`. Each component adds its own parts and puts the sum into its pods.
"""
