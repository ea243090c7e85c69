# calico-node clears the condition NetworkUnavailable when it starts. A cloud controller may set it
# again, and then no pod is scheduled to the node, so clear it while calico-node is ready.
while true; do
  if calico-node -felix-ready >/tmp/log 2>&1; then
    calico-node -startup >/tmp/log 2>&1 || cat /tmp/log >&2
  fi
  date +%s > /tmp/alive
  sleep 60
done
