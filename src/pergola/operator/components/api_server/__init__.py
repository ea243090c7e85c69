"""What kube-apiserver and gardener-apiserver have in common (spec 20 §15.2, §16.2).

Each module returns the `Part` of one concern: `serving` (etcd, TLS, limits), `audit`, `admission`
and `encryption`. The two components add theirs, and put the sum into their pods.
"""
