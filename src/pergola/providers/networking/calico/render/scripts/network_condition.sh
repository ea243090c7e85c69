# Something may set NetworkUnavailable after calico-node took it back; pods would not start then.
token_file=/var/run/secrets/kubernetes.io/serviceaccount/token
ca=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
host=$KUBERNETES_SERVICE_HOST
case $host in *:*) host="[$host]" ;; esac
node="https://$host:$KUBERNETES_SERVICE_PORT/api/v1/nodes/$NODENAME"

ask() {
  curl --silent --show-error --fail --max-time 10 --cacert "$ca" \
    --header "Authorization: Bearer $(cat "$token_file")" "$@"
}

while true; do
  date +%s > /tmp/alive
  if curl --silent --fail --max-time 5 "http://localhost:9099/readiness" >/dev/null \
    && ask "$node" | tr -d ' \n' | grep -q '"type":"NetworkUnavailable","status":"True"'; then
    now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    ask --request PATCH --header "Content-Type: application/strategic-merge-patch+json" \
      --data "{\"status\":{\"conditions\":[{\"type\":\"NetworkUnavailable\",\"status\":\"False\",\"reason\":\"CalicoIsUp\",\"message\":\"Calico is running on this node\",\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$now\"}]}}" \
      --output /dev/null "$node/status" && echo "NetworkUnavailable taken back"
  fi
  sleep 30
done
