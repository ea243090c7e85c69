"""The webhooks of control planes in AWS, on the seed and in Shoots (spec 31 §8).

catalog             all of them, with what they concern
edits               edits of maps, lists and commands
deployments         Kubernetes' own components
machines            the driver for machines, and its VPA
operating_system    OperatingSystemConfigs
kubelet_unit        the systemd unit of the kubelet
kubelet_config      the configuration file of the kubelet
node_files          files and units that only nodes on AWS have
etcds               volumes of etcd
cloud_credentials   the Secret `cloudprovider`
volume_autoscalers  PersistentVolumeClaimAutoscalers
services            load balancers in Shoots
"""

from pergola.providers.aws.control_plane.webhooks.catalog import AwsWebhooks
from pergola.providers.aws.control_plane.webhooks.etcds import EtcdStorage

__all__ = ["AwsWebhooks", "EtcdStorage"]
