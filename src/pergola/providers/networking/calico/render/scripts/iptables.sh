# The rules of calico-node and of kube-proxy are in one of two tables; join the one with more rules.
if [ "$(iptables-legacy-save 2>/dev/null | wc -l)" -gt "$(iptables-nft-save 2>/dev/null | wc -l)" ]; then
  flavor=legacy
else
  flavor=nft
fi
