"""gardener-apiserver: serves the API groups of Gardener (spec 20 §16.2).

workload      the Deployment and what surrounds it, in the runtime cluster
registration  how the API server of the virtual cluster finds it, and its permissions there
component     the component itself
"""
