"""terminal-controller-manager: terminals in the dashboard (spec 20 §16.6).

workload      the Deployment, its companions and the component itself
registration  the CRD of terminals, its webhooks, and permissions in the virtual cluster
"""
