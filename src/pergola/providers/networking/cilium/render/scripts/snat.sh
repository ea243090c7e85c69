# Keeps one chain of the nat table, and removes it when it is stopped.
# Usage: bash -c SCRIPT NAME CHAIN MARK
# IPTABLES_RULES and IP6TABLES_RULES hold the input of iptables-restore for the families in use.
# MARK exists while the rules are in place.
set -o nounset
chain=$1 mark=$2
declare -A rules=()
if [ -n "${IPTABLES_RULES:-}" ]; then rules[iptables]=$IPTABLES_RULES; fi
if [ -n "${IP6TABLES_RULES:-}" ]; then rules[ip6tables]=$IP6TABLES_RULES; fi

ensure() {
  # Restoring a chain replaces its rules at once: none is there twice, and none is left behind.
  printf '%s\n' "${rules[$1]}" | "$1-restore" --noflush --wait=5 || return 1
  "$1" -w 5 -t nat -C POSTROUTING -j "$chain" 2>/dev/null \
    || "$1" -w 5 -t nat -I POSTROUTING -j "$chain"
}

remove() {
  "$1" -w 5 -t nat -D POSTROUTING -j "$chain" 2>/dev/null
  "$1" -w 5 -t nat -F "$chain" 2>/dev/null
  "$1" -w 5 -t nat -X "$chain" 2>/dev/null
}

trap 'for tool in "${!rules[@]}"; do remove "$tool"; done; exit 0' TERM INT
while true; do
  healthy=yes
  for tool in "${!rules[@]}"; do ensure "$tool" || healthy=no; done
  if [ "$healthy" = yes ]; then touch "$mark"; else rm -f "$mark"; fi
  sleep 30 &
  wait $!
done
