"""The kube-apiserver of the virtual cluster (spec 20 §15.2).

component       the component, which combines all parts
flags           the flags for APIs, tokens, limits and SNI
identities      its certificates and tokens
authentication  the authentication of its users
authorization   the authorization of their requests
workload        the Deployment and its autoscalers
"""
