"""The NetworkPolicies of namespaces that belong to a garden (spec 21 §5.5).

They deny all connections, and allow those to DNS, to the runtime cluster's API server, and, for
labelled pods, to public, private and blocked networks. The resource manager adds those between
Services.
"""
