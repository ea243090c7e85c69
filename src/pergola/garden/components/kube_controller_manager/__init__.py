"""The kube-controller-manager of the virtual cluster, which has no nodes (spec 20 §15.4).

deployment   the workload
controllers  the controllers to run
"""
