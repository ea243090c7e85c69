# The kernel logs each packet that this node refuses as too big: a wrong MTU is silent otherwise.
log() {
  command="$1-$flavor"
  shift
  "$command" -w -C OUTPUT "$@" 2>/dev/null || "$command" -w -A OUTPUT "$@" \
    || echo "cannot log packets that are too big: $command failed" >&2
}

limit="-m limit --limit 10/minute"
log iptables -p icmp --icmp-type fragmentation-needed $limit -j LOG --log-prefix "PACKET-TOO-BIG "
log ip6tables -p ipv6-icmp --icmpv6-type packet-too-big $limit -j LOG --log-prefix "PACKET-TOO-BIG "
