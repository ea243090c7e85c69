"""What a cluster around a Garden does, where no node can run it.

etcd_druid      runs the etcds of `Etcd` objects on a process node
claims          gives PersistentVolumeClaims a volume
load_balancers  gives Services of type LoadBalancer an address
"""
