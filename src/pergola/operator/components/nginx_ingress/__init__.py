"""nginx-ingress: serves the Ingresses of the runtime cluster, behind the ingress gateway.

`permissions` says what the controller may do, `programs` are the controller and the default
backend, `objects` has the component (spec 20 §13).
"""
