"""A stand-in for istiod: it configures gateways that pass TLS connections on by server name (SNI).

It reads Gateways, VirtualServices and DestinationRules as the original does, and hands the Envoy
of each gateway its listeners and clusters. It talks to gateways over TLS, with an authority of its
own, whose certificate is in the ConfigMap `istio-ca-root-cert` of every namespace. Gateways use
Envoy's REST protocol with long polling, not gRPC.

`routes` selects what concerns a gateway, `envoy` renders it, `discovery` answers gateways, and
`trust` keeps the authority. Not for: servers that terminate TLS, routes by HTTP, EnvoyFilters,
sidecars and injection.
"""
