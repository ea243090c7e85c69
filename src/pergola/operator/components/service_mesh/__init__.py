"""Istio: the control plane, and the gateway through which everything is reached (spec 20 §13).

`istiod` and `permissions` are the control plane. Of the gateway, `gateway` has the pods, `scaling`
how many there are, `entrances` the Services, and `filters` what Envoy does to requests. `objects`
has the component.

How a component exposes a host is in `pergola.operator.components.istio`.
"""
