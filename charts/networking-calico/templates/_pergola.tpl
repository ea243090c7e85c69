{{- /*
What all charts of Pergola share. The source is charts/shared/_pergola.tpl; `python -m tools.charts`
copies it into each chart, because Helm can only package a library chart that it has pulled before.

Most templates expect a list of the root and the prefix of the chart's own templates, which are
PREFIX.name (of all objects), PREFIX.selector (the labels that select its pods, and cannot change)
and PREFIX.job (the Service that Prometheus scrapes, and thus the label `job` of the metrics).
*/ -}}

{{/* The reference of the image; expects the root. */}}
{{- define "pergola.image" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "image.repository is not set: name an image that has pergola on its path, for example with --set image.repository=registry.example/pergola" -}}
{{- end -}}
{{- with .Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- $tag := $image.tag | default .Chart.AppVersion -}}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- end -}}
{{- end -}}

{{/* The variable for processes that deploy images of other projects; a list; expects the root. */}}
{{- define "pergola.imageVariables" -}}
{{- with .Values.imageRegistry -}}
- name: PERGOLA_IMAGE_REGISTRY
  value: {{ . | quote }}
{{- end -}}
{{- end -}}

{{/* Labels of all objects. */}}
{{- define "pergola.labels" -}}
{{- $root := index . 0 -}}
{{- $labels := include "pergola.podIdentity" . | fromYaml -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- merge $labels (dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" $root.Release.Service) | toYaml -}}
{{- end -}}

{{/* The recommended labels that pods have, too. */}}
{{- define "pergola.podIdentity" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $labels := dict
  "app.kubernetes.io/name" (include (printf "%s.name" $prefix) $root)
  "app.kubernetes.io/instance" ($root.Release.Name | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_")
  "app.kubernetes.io/part-of" "pergola"
-}}
{{- mergeOverwrite $labels (include (printf "%s.selector" $prefix) $root | fromYaml) | toYaml -}}
{{- end -}}

{{/* Labels of pods; also expects a map of those that the chart sets. They win over those of users. */}}
{{- define "pergola.podLabels" -}}
{{- $root := index . 0 -}}
{{- mergeOverwrite (deepCopy ($root.Values.podLabels | default dict)) (include "pergola.podIdentity" . | fromYaml) (index . 2) | toYaml -}}
{{- end -}}

{{/* The fields of a pod about its identity and its place; may also expect a list of tolerations. */}}
{{- define "pergola.pod" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $values := $root.Values -}}
serviceAccountName: {{ include "pergola.account" . }}
automountServiceAccountToken: false
{{- $class := $values.priorityClassName -}}
{{- with $values.gardener -}}
{{- $class = dig "runtimeCluster" "priorityClassName" "" . | default $class -}}
{{- end -}}
{{- with $class }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := $values.tolerations | default list -}}
{{- if gt (len .) 2 -}}
{{- $tolerations = concat (index . 2) $tolerations -}}
{{- end -}}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
{{- $selector := dict "matchLabels" (include (printf "%s.selector" $prefix) $root | fromYaml) }}
- {{ set (deepCopy .) "labelSelector" (.labelSelector | default $selector) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
securityContext:
  # The token's owner: no other user may read it.
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{/* The name of the ServiceAccount. */}}
{{- define "pergola.account" -}}
{{- $root := index . 0 -}}
{{- $root.Values.serviceAccountName | default (include (printf "%s.name" (index . 1)) $root) -}}
{{- end -}}

{{/* The fields of a container that all have; expects the root, and a list of variables of the chart. */}}
{{- define "pergola.container" -}}
{{- $values := (index . 0).Values -}}
image: {{ include "pergola.image" (index . 0) | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
{{- with concat (index . 1) ($values.env | default list) }}
env:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with $values.envFrom }}
envFrom:
{{- toYaml . | nindent 0 }}
{{- end }}
# It starts in one to two seconds; the other probes begin when this one succeeds.
startupProbe:
  httpGet:
    path: /healthz
    port: health
    scheme: HTTP
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: health
    scheme: HTTP
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: health
    scheme: HTTP
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Arguments of users; expects the root. */}}
{{- define "pergola.extraArgs" -}}
{{- with .Values.extraArgs -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{/* The mount of the token, and its volume; both expect the name of the volume. */}}
{{- define "pergola.tokenMount" -}}
- name: {{ . }}
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{- define "pergola.tokenVolume" -}}
- name: {{ . }}
  projected:
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 43200
    - configMap:
        name: kube-root-ca.crt
        items:
        - key: ca.crt
          path: ca.crt
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            fieldPath: metadata.namespace
{{- end -}}

{{/* The ServiceAccount. */}}
{{- define "pergola.serviceAccount" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "pergola.account" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
  {{- with $root.Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}

{{/* The PodDisruptionBudget. */}}
{{- define "pergola.podDisruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- if $root.Values.podDisruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include (printf "%s.name" $prefix) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ $root.Values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include (printf "%s.selector" $prefix) $root | nindent 6 }}
{{- end -}}
{{- end -}}

{{/*
The labels by which Gardener's policies let the pods of an extension connect to others. Interface
endpoints of a cloud, and API servers, may have private addresses.
*/}}
{{- define "pergola.extensionConnections" -}}
networking.gardener.cloud/to-dns: allowed
networking.gardener.cloud/to-private-networks: allowed
networking.gardener.cloud/to-public-networks: allowed
networking.gardener.cloud/to-runtime-apiserver: allowed
networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443: allowed
{{- end -}}

{{/* The annotations by which the Prometheus of a Seed finds the pods of an extension; expects the root. */}}
{{- define "pergola.extensionScraping" -}}
prometheus.io/name: {{ .Release.Name }}
prometheus.io/port: {{ index .Values.usablePorts 0 | quote }}
prometheus.io/scrape: "true"
{{- end -}}

{{/*
The Service of an extension. Gardener denies all connections in its namespace but those that these
annotations permit: of Prometheus and, if there are webhooks, of API servers. That of the cluster
itself may be outside of it. Also expects who calls webhooks: a list with "shoots", "seed" or both.
*/}}
{{- define "pergola.extensionService" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $callers := index . 2 -}}
{{- $annotations := "networking.resources.gardener.cloud" -}}
{{- $port := dict "protocol" "TCP" "port" (index $root.Values.usablePorts 1 | int) | list | toJson -}}
{{- $namespaces := list (dict "matchLabels" (dict "kubernetes.io/metadata.name" "garden")) -}}
{{- if $callers -}}
{{- $namespaces = append $namespaces (dict "matchLabels" (dict "gardener.cloud/role" "shoot")) -}}
{{- end -}}
{{- $scrapes := eq (toString $root.Values.gardener.runtimeCluster.enabled) "true" | ternary "garden" "seed" -}}
apiVersion: v1
kind: Service
metadata:
  name: gardener-extension-{{ $root.Chart.Name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
  annotations:
    {{- if $callers }}
    {{ $annotations }}/from-all-webhook-targets-allowed-ports: {{ $port | squote }}
    {{- end }}
    {{- if has "seed" $callers }}
    {{ $annotations }}/from-world-to-ports: {{ $port | squote }}
    {{- end }}
    {{ $annotations }}/from-all-{{ $scrapes }}-scrape-targets-allowed-ports: {{ dict "protocol" "TCP" "port" (index $root.Values.usablePorts 0 | int) | list | toJson | squote }}
    {{ $annotations }}/namespace-selectors: {{ $namespaces | toJson | squote }}
    {{ $annotations }}/pod-label-selector-namespace-alias: extensions
spec:
  selector:
    {{- include (printf "%s.selector" $prefix) $root | nindent 4 }}
  ports:
  {{- if $callers }}
  - name: webhooks
    port: 443
    targetPort: webhooks
    protocol: TCP
  {{- end }}
  - name: metrics
    port: 8080
    targetPort: metrics
    protocol: TCP
{{- end -}}

{{/* Where pods get credentials for AWS: those of their instance, of their task, or of their ServiceAccount. */}}
{{- define "pergola.awsCredentialsEgress" -}}
- to:
  {{- range list "169.254.169.254/32" "169.254.170.2/32" "169.254.170.23/32" "fd00:ec2::254/128" "fd00:ec2::23/128" }}
  - ipBlock:
      cidr: {{ . | quote }}
  {{- end }}
  ports:
  - port: 80
    protocol: TCP
{{- end -}}

{{/*
The connections that the pods need in a namespace whose other traffic is denied; also expects a list
of ingress rules, and may expect one of egress rules. API servers call webhooks from addresses that
no selector finds.
*/}}
{{- define "pergola.networkPolicy" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $rules := index . 2 -}}
{{- if $root.Values.networkPolicy.enabled -}}
{{- with $root.Values.networkPolicy.metricsFrom -}}
{{- $rules = append $rules (dict "from" . "ports" (list (dict "port" "metrics" "protocol" "TCP"))) -}}
{{- end -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include (printf "%s.name" $prefix) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include (printf "%s.selector" $prefix) $root | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with $rules }}
  ingress:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  egress:
  # Policies see the addresses and ports behind Services: DNS servers may listen on 8053.
  - to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
      podSelector:
        matchExpressions:
        - key: k8s-app
          operator: In
          values: [kube-dns, coredns, node-local-dns]
    ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
    - port: 8053
      protocol: UDP
    - port: 8053
      protocol: TCP
  # API servers, and the cloud; restrict it to their addresses if they are fixed.
  - ports:
    - port: 443
      protocol: TCP
    - port: 6443
      protocol: TCP
  {{- with concat (gt (len .) 3 | ternary (last .) list) ($root.Values.networkPolicy.egress | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/*
The Service and the ServiceMonitor of a process that has no other Service with its metrics; may also
expect annotations of the Service.
*/}}
{{- define "pergola.metrics" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $component := dict "app.kubernetes.io/component" "metrics" -}}
{{- if $root.Values.serviceMonitor.enabled -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include (printf "%s.job" $prefix) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- merge (include "pergola.labels" . | fromYaml) $component | toYaml | nindent 4 }}
  {{- if gt (len .) 2 }}
  annotations:
    {{- index . 2 | toYaml | nindent 4 }}
  {{- end }}
spec:
  clusterIP: None
  selector:
    {{- include (printf "%s.selector" $prefix) $root | nindent 4 }}
  ports:
  - name: metrics
    port: 8080
    targetPort: metrics
    protocol: TCP
---
{{ include "pergola.serviceMonitor" (list $root $prefix $component) }}
{{- end -}}
{{- end -}}

{{/* A ServiceMonitor of the Service with the labels of the selector and those in a map. */}}
{{- define "pergola.serviceMonitor" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $monitor := $root.Values.serviceMonitor -}}
{{- if $monitor.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include (printf "%s.name" $prefix) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- mergeOverwrite (include "pergola.labels" . | fromYaml) $monitor.labels | toYaml | nindent 4 }}
spec:
  selector:
    matchLabels:
      {{- merge (include (printf "%s.selector" $prefix) $root | fromYaml) (index . 2) | toYaml | nindent 6 }}
  endpoints:
  # Some metrics have the namespace of the object that they are about.
  - honorLabels: true
    port: metrics
    interval: {{ $monitor.interval }}
{{- end -}}
{{- end -}}

{{/* Alerts, with the process that they are about. */}}
{{- define "pergola.prometheusRule" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- if $root.Values.prometheusRule.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ include (printf "%s.name" $prefix) $root }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- mergeOverwrite (include "pergola.labels" . | fromYaml) $root.Values.prometheusRule.labels | toYaml | nindent 4 }}
spec:
  groups:
  {{- range $path, $_ := $root.Files.Glob "files/alerts/*.yaml" }}
  {{- $rules := $root.Files.Get $path | replace "JOB" (include (printf "%s.job" $prefix) $root) | replace "https://pergola.dev" (trimSuffix "/" $root.Values.prometheusRule.documentation) | fromYaml }}
  {{- toYaml $rules.groups | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* A dashboard that the sidecar of Grafana loads by its label. */}}
{{- define "pergola.dashboard" -}}
{{- $root := index . 0 -}}
{{- $prefix := index . 1 -}}
{{- $job := include (printf "%s.job" $prefix) $root -}}
{{- if $root.Values.dashboard.enabled -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include (printf "%s.name" $prefix) $root }}-dashboard
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- merge (include "pergola.labels" . | fromYaml) (dict "grafana_dashboard" "1") | toYaml | nindent 4 }}
data:
  {{ $job }}.json: |
    {{- $root.Files.Get "files/dashboard.json" | replace "JOB" $job | nindent 4 }}
{{- end -}}
{{- end -}}

{{/*
A ControllerRing with its resources as a map from plurals to groups, and the permission of the sharder
to label them; also expects the name of the ring, which may be empty.
*/}}
{{- define "pergola.controllerRing" -}}
{{- $labels := include "pergola.labels" . -}}
{{- $resources := index . 3 -}}
{{- with index . 2 -}}
apiVersion: sharding.timebertt.dev/v1alpha1
kind: ControllerRing
metadata:
  name: {{ . }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  resources:
  {{- range $resource, $group := $resources }}
  - group: {{ $group }}
    resource: {{ $resource }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sharding:controllerring:{{ . }}
  labels:
    {{- $labels | nindent 4 }}
rules:
{{- range $resource, $group := $resources }}
- apiGroups: [{{ $group }}]
  resources: [{{ $resource }}]
  verbs: [list, patch]
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: sharding:controllerring:{{ . }}
  labels:
    {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: sharding:controllerring:{{ . }}
subjects:
- kind: ServiceAccount
  name: sharder
  namespace: sharding-system
{{- end -}}
{{- end -}}

{{/*
CustomResourceDefinitions. They are templates, because Helm does not upgrade what is in the folder
crds. Those that somebody else installed, such as `pergola crds --apply`, stay with them: Helm would
refuse to install the release. Expects the root.
*/}}
{{- define "pergola.crds" -}}
{{- $root := . -}}
{{- if .Values.crds.enabled -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $root.Files.Get $path | fromYaml }}
{{- if not (include "pergola.isForeign" (list $root $crd.metadata.name)) }}
{{- if $root.Values.crds.keep }}
{{- $_ := set $crd.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- end }}
---
{{ toYaml $crd }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* "true" if a CustomResourceDefinition exists and belongs to no release or another one. */}}
{{- define "pergola.isForeign" -}}
{{- $release := (index . 0).Release -}}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (index . 1) -}}
{{- if $live -}}
{{- $name := dig "annotations" "meta.helm.sh/release-name" "" $live.metadata -}}
{{- $namespace := dig "annotations" "meta.helm.sh/release-namespace" "" $live.metadata -}}
{{- if not (and (eq $name $release.Name) (eq $namespace $release.Namespace)) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A sentence for each CustomResourceDefinition that the release does not own; expects the root. */}}
{{- define "pergola.notesOfCrds" -}}
{{- $root := . -}}
{{- if .Values.crds.enabled -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := $root.Files.Get $path | fromYaml }}
{{- if include "pergola.isForeign" (list $root $crd.metadata.name) }}
CustomResourceDefinition {{ $crd.metadata.name }} was not installed by this release, which leaves it alone.
Upgrade it as it was installed, for example with `pergola crds --apply`.
{{ end }}
{{- end }}
{{- end -}}
{{- end -}}
