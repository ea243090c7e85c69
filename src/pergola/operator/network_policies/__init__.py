"""The NetworkPolicies of namespaces that belong to a garden (spec 21 §5.5).

They forbid all connections, and allow those to DNS, to the API server of the runtime cluster, and
to public, private and blocked networks to pods with a label for it. The resource manager adds those
between Services.
"""
