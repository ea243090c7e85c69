"""The operator: keeps a Garden, everything that a Gardener landscape consists of (spec 20).

`garden` reconciles a Garden, `components` are the parts that it is made of, `webhooks` admit
Gardens and what belongs to them, and `known` has facts about versions of Kubernetes and Gardener.

Not for: what a resource manager does with the objects; that is `pergola.resource_manager`.
"""
