"""A stand-in for istiod: it configures gateways that route by server name (SNI) and by HTTP.

It reads Gateways, VirtualServices, DestinationRules and EnvoyFilters as the original does, with the
certificates in Secrets, and hands the Envoy of each gateway its listeners and clusters. It talks to
gateways over TLS, with an authority of its own, whose certificate is in the ConfigMap
`istio-ca-root-cert` of every namespace. Gateways use Envoy's REST protocol with long polling, not
gRPC.

`selection` finds the objects of a gateway, `routes` the connections that it forwards encrypted, and
`termination` those that it decrypts, with `credentials`. `envoy` renders the listeners, `requests`,
`tls` and `clusters` their parts; `patches` reads EnvoyFilters, and `patching` applies them.
`discovery` answers gateways, and `trust` keeps the authority. Not for: plain HTTP, sidecars and
injection.
"""
