"""The kube-apiserver of the virtual cluster (spec 20 §15.2).

component       the component: its parts together
flags           what it serves, to whom, and where it stores
identities      its certificates and tokens
authentication  who its users are
authorization   what they may do
workload        the Deployment, and how it is scaled
"""
