# A tunnel that no overlay uses any more would still attract packets by its routes.
for device in tunl0 vxlan.calico vxlan-v6.calico; do
  if ip link show dev "$device" >/dev/null 2>&1; then
    ip -4 route flush dev "$device" proto 80 || true
    ip -6 route flush dev "$device" proto 80 || true
    ip link set dev "$device" down || true
    echo "routes over $device removed"
  fi
done
