"""Simulated parts of a cluster around a Garden: a process node, and other projects' controllers.

site            all of it together
etcd_druid      runs the etcds of `Etcd` objects on the process node
claims          gives PersistentVolumeClaims a volume
load_balancers  gives Services of type LoadBalancer an address
admission       a gardener-admission-controller that admits everything
machines        nodes of Shoots for the machines of machine-controller-manager
shoot_nodes     what kubelets and gardener-node-agents write there
reported        success of monitoring and extension resources, of which nothing runs
"""

from pergola.sandbox.simulated.site import NAMESPACE, Site, SiteSettings, garden_site, running

__all__ = ["NAMESPACE", "Site", "SiteSettings", "garden_site", "running"]
