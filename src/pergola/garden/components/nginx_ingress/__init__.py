"""nginx-ingress: serves the Ingresses of the runtime cluster, behind the ingress gateway.

`permissions` has the roles of the controller, `programs` the controller and the default backend,
and `objects` the component (spec 20 §13).
"""
