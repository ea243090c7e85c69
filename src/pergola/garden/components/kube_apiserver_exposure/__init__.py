"""The exposure of the virtual cluster's API server (spec 20 §15.3).

`services` has its Services, `hosts` the certificate of each host name, `sni` the component that
exposes it through the ingress gateway, and `termination` the objects with which the gateway
terminates TLS.
"""
