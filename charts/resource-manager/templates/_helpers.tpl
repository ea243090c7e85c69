{{/* The name of all objects. The lease and the webhooks' registration have it, too. */}}
{{- define "resource-manager.name" -}}
gardener-resource-manager
{{- end -}}

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "resource-manager.selector" -}}
app: {{ include "resource-manager.name" . }}
{{- end -}}

{{- define "resource-manager.labels" -}}
{{ include "pergola.labels" (list . "resource-manager") }}
{{- end -}}

{{/* The kubeconfigs by the key under which a Secret has them; empty without any. */}}
{{- define "resource-manager.kubeconfigs" -}}
{{- range $key, $connection := dict "source" "sourceClientConnection" "target" "targetClientConnection" -}}
{{- with dig $connection "kubeconfig" "" $.Values.config }}
{{ $key }}: {{ . | toJson }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" if the objects of ManagedResources are in the cluster in which the chart is installed. */}}
{{- define "resource-manager.hasTarget" -}}
{{- $kubeconfigs := include "resource-manager.kubeconfigs" . | fromYaml -}}
{{- $connected := hasKey .Values.config "targetClientConnection" -}}
{{- if and (not $kubeconfigs.target) (or $connected (not $kubeconfigs.source)) -}}
true
{{- end -}}
{{- end -}}

{{/* The port of an endpoint; expects a list of the root and the endpoint's name. */}}
{{- define "resource-manager.port" -}}
{{- $defaults := dict "webhooks" 9449 "healthProbes" 8081 "metrics" 8080 -}}
{{- $name := index . 1 -}}
{{- dig "server" $name "port" (get $defaults $name) (index . 0).Values.config | int -}}
{{- end -}}

{{/* The configuration file. */}}
{{- define "resource-manager.config" -}}
{{- $mounted := dict -}}
{{- range $key, $_ := include "resource-manager.kubeconfigs" . | fromYaml -}}
{{- $path := printf "/etc/gardener-resource-manager/kubeconfigs/%s" $key -}}
{{- $_ := set $mounted (printf "%sClientConnection" $key) (dict "kubeconfig" $path) -}}
{{- end -}}
{{- if .Values.certificateSecret -}}
{{- $tls := dict "serverCertDir" "/etc/gardener-resource-manager/tls" -}}
{{- $webhooks := dict "selfSigned" (dict "enabled" false) "tls" $tls -}}
{{- $_ := set $mounted "server" (dict "webhooks" $webhooks) -}}
{{- end -}}
{{- $webhooks := dict "namespace" .Release.Namespace -}}
{{- if include "resource-manager.hasTarget" . -}}
{{- $_ := set $webhooks "ownerClusterRole" (include "resource-manager.name" .) -}}
{{- end -}}
{{- $here := dict
  "leaderElection" (dict "resourceNamespace" .Release.Namespace)
  "server" (dict "webhooks" (dict "selfSigned" $webhooks))
-}}
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
{{ mergeOverwrite $here (deepCopy .Values.config) $mounted | toYaml }}
{{- end -}}

{{/* The roles that the process needs in the cluster of ManagedResources, if their objects are elsewhere. */}}
{{- define "resource-manager.sourceRoles" -}}
- managed-resources
{{- if dig "controllers" "tokenRequestor" "enabled" false .Values.config }}
- token-requestor
{{- end }}
{{- end -}}

{{/* The same for each namespace of Machines, as a map from roles to namespaces. */}}
{{- define "resource-manager.machineRoles" -}}
{{- $approver := dig "controllers" "csrApprover" (dict) .Values.config -}}
{{- $authorizer := dig "webhooks" "nodeAgentAuthorizer" (dict) .Values.config -}}
{{- range $role, $of := dict "csr-approver" $approver "node-agent-authorizer" $authorizer -}}
{{- if and $of.enabled $of.machineNamespace }}
{{ $role }}: {{ $of.machineNamespace }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A binding of a source role; expects a list of the root, the role, and the namespace or nothing. */}}
{{- define "resource-manager.binding" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $namespace := index . 2 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ empty $namespace | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  name: {{ include "resource-manager.name" $root }}-{{ $role }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "resource-manager.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: pergola:{{ $role }}:source
subjects:
- kind: ServiceAccount
  name: {{ include "resource-manager.name" $root }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "resource-manager.job" -}}
{{ include "resource-manager.name" . }}
{{- end -}}
