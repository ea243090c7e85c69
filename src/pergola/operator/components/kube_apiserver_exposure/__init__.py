"""How the virtual cluster's API server is reached from everywhere (spec 20 §15.3).

`services` has its Services, `hosts` which certificate each of its names has, `sni` the component
that exposes them through the ingress gateway, and `termination` what the gateway needs to decrypt
connections.
"""
