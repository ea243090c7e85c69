# Packets of pods have to fit through the node's interface; if not, connections hang silently.
device=$(ip -o route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
[ -n "$device" ] || exit 0
limit=$(cat "/sys/class/net/$device/mtu")
for path in /sys/class/net/cali* /sys/class/net/tunl0 /sys/class/net/vxlan.calico; do
  [ -r "$path/mtu" ] || continue
  mtu=$(cat "$path/mtu")
  if [ "$mtu" -gt "$limit" ]; then
    echo "warning: the MTU of ${path##*/} is $mtu, more than the $limit of $device"
  fi
done
