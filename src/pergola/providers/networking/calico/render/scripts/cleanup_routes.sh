# Routes of a former overlay attract packets: those over its tunnels, and those that BIRD wrote.
bird=12 # as in /etc/iproute2/rt_protos, which an image need not have
felix=80
for family in -4 -6; do
  for device in tunl0 vxlan.calico vxlan-v6.calico; do
    for protocol in $bird $felix; do
      ip $family route flush dev "$device" proto $protocol 2>/dev/null
    done
  done
  if [ "$CALICO_BACKEND" != bird ]; then
    ip $family route flush proto $bird
  fi
done
# The tunnels stay: nodes that have not restarted yet still send encapsulated packets.
true
