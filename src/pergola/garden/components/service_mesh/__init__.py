"""Istio: the control plane, and the ingress gateway of the garden (spec 20 §13).

`istiod` and `permissions` are the control plane. For the gateway, `gateway` has the pods, `scaling`
their autoscalers, `entrances` the Services, and `filters` the extra settings of Envoy. `objects`
has the component.

Components expose hosts with `pergola.garden.components.istio`.
"""
