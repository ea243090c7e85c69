# Without an overlay, pods keep their address, which name servers of the infrastructure do not answer.
ensure() {
  for protocol in udp tcp; do
    "$1-$flavor" -w -t nat -C POSTROUTING -s "$2" -d "$3" -p $protocol --dport 53 -j MASQUERADE 2>/dev/null \
      || "$1-$flavor" -w -t nat -I POSTROUTING 1 -s "$2" -d "$3" -p $protocol --dport 53 -j MASQUERADE
  done
}

while true; do
  date +%s > /tmp/alive
  for server in $(sed -n 's/^nameserver *\([^ %]*\).*/\1/p' /etc/resolv.conf); do
    case $server in
      127.*|::1) ;;
      *:*) [ -z "$POD_CIDR_V6" ] || ensure ip6tables "$POD_CIDR_V6" "$server" ;;
      *) [ -z "$POD_CIDR_V4" ] || ensure iptables "$POD_CIDR_V4" "$server" ;;
    esac
  done
  sleep 30
done
