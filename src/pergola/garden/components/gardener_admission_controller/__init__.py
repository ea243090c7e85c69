"""gardener-admission-controller: admission and authorization webhooks (spec 20 §16.3).

workload  the Deployment, its permissions, and the component itself
webhooks  its registrations with the virtual cluster's API server
"""
