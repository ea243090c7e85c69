"""terminal-controller-manager: terminals in the dashboard (spec 20 §16.6).

workload      the Deployment and what surrounds it, and the component itself
registration  the API of terminals, its webhooks, and permissions in the virtual cluster
"""
