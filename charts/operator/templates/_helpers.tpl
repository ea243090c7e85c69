{{/* The namespace of all objects. The API server calls the webhooks there, so it is fixed. */}}
{{- define "operator.namespace" -}}
{{- if ne .Release.Namespace "garden" -}}
{{- fail (printf "the operator runs in namespace garden, not in %s: install it with --namespace garden" .Release.Namespace) -}}
{{- end -}}
garden
{{- end -}}

{{/* The labels by which the Deployment and the Service find the pods. They cannot change. */}}
{{- define "operator.selector" -}}
app: gardener
role: operator
{{- end -}}

{{/* The name of all objects. */}}
{{- define "operator.name" -}}
gardener-operator
{{- end -}}

{{- define "operator.labels" -}}
{{ include "pergola.labels" (list . "operator") }}
{{- end -}}

{{/* Of ConfigMaps and Secrets with a hash in their name: the resource manager collects old ones. */}}
{{- define "operator.labels.unique" -}}
{{ include "operator.labels" . }}
resources.gardener.cloud/garbage-collectable-reference: "true"
{{- end -}}

{{/* The port of an endpoint; expects a list of the root and the endpoint's name. */}}
{{- define "operator.port" -}}
{{- $defaults := dict "webhooks" 2750 "healthProbes" 2751 "metrics" 2752 -}}
{{- $name := index . 1 -}}
{{- dig "server" $name "port" (get $defaults $name) (index . 0).Values.config | int -}}
{{- end -}}

{{/* The configuration file. */}}
{{- define "operator.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if include "operator.kubeconfig" . -}}
{{- $_ := set $config.runtimeClientConnection "kubeconfig" "/etc/gardener-operator/kubeconfig/kubeconfig" -}}
{{- end -}}
{{- if not (include "operator.kubeconfig" .) -}}
{{- $owner := dict "ownerClusterRole" "gardener.cloud:system:gardener-operator" -}}
{{- $config = mergeOverwrite (dict "server" (dict "webhooks" $owner)) $config -}}
{{- end -}}
{{- if and .Values.nodeToleration (not (hasKey $config "nodeToleration")) -}}
{{- $_ := set $config "nodeToleration" .Values.nodeToleration -}}
{{- end -}}
apiVersion: operator.config.gardener.cloud/v1alpha1
kind: OperatorConfiguration
{{ omit $config "apiVersion" "kind" | toYaml }}
{{- end -}}

{{/* The content of the runtime cluster's kubeconfig; empty without one. */}}
{{- define "operator.kubeconfig" -}}
{{- dig "runtimeClientConnection" "kubeconfig" "" .Values.config -}}
{{- end -}}

{{- define "operator.config.name" -}}
gardener-operator-configmap-{{ include "operator.config" . | sha256sum | trunc 8 }}
{{- end -}}

{{- define "operator.kubeconfig.name" -}}
gardener-operator-kubeconfig-{{ include "operator.kubeconfig" . | sha256sum | trunc 8 }}
{{- end -}}

{{/*
The image vectors that values provide, as a map with a list: which ConfigMap has it, which file in
it, and which variable names that file to the process.
*/}}
{{- define "operator.imageVectors" -}}
{{- $all := list
  (list "gardener-operator-imagevector-overwrite" "images.yaml" "IMAGEVECTOR_OVERWRITE" .Values.imageVectorOverwrite)
  (list "gardener-operator-imagevector-overwrite-components" "components.yaml" "IMAGEVECTOR_OVERWRITE_COMPONENTS" .Values.componentImageVectorOverwrites)
  (list "gardener-operator-imagevector-overwrite-charts" "charts.yaml" "IMAGEVECTOR_OVERWRITE_CHARTS" .Values.chartsImageVectorOverwrite)
-}}
{{- $found := list -}}
{{- range $each := $all -}}
{{- $text := index $each 3 -}}
{{- if $text -}}
{{- $prefix := index $each 0 -}}
{{- $volume := $prefix | trimPrefix "gardener-operator-" -}}
{{- $vector := dict
  "name" (printf "%s-%s" $prefix ($text | sha256sum | trunc 8))
  "volume" $volume
  "directory" (printf "/etc/gardener-operator/%s" $volume)
  "file" (index $each 1)
  "variable" (index $each 2)
  "text" $text
-}}
{{- $found = append $found $vector -}}
{{- end -}}
{{- end -}}
{{- dict "found" $found | toYaml -}}
{{- end -}}

{{/* Name what the pods refer to, so that the resource manager does not collect it. */}}
{{- define "operator.references" -}}
{{- $names := list (include "operator.config.name" .) -}}
{{- range (include "operator.imageVectors" . | fromYaml).found -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range $names }}
reference.resources.gardener.cloud/configmap-{{ sha256sum . | trunc 8 }}: {{ . }}
{{- end }}
{{- if include "operator.kubeconfig" . }}
{{- $name := include "operator.kubeconfig.name" . }}
reference.resources.gardener.cloud/secret-{{ sha256sum $name | trunc 8 }}: {{ $name }}
{{- end }}
{{- end -}}

{{/* Where the pods may connect to, and which webhooks of the Garden leave them alone. */}}
{{- define "operator.podLabels" -}}
networking.gardener.cloud/to-dns: allowed
networking.gardener.cloud/to-private-networks: allowed
networking.gardener.cloud/to-public-networks: allowed
networking.gardener.cloud/to-runtime-apiserver: allowed
networking.resources.gardener.cloud/to-gardener-apiserver-tcp-8443: allowed
networking.resources.gardener.cloud/to-prometheus-garden-tcp-9090: allowed
networking.resources.gardener.cloud/to-prometheus-longterm-tcp-9090: allowed
networking.resources.gardener.cloud/to-virtual-garden-etcd-main-client-tcp-8080: allowed
networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443: allowed
projected-token-mount.resources.gardener.cloud/skip: "true"
seccompprofile.resources.gardener.cloud/skip: "true"
system-components-config.resources.gardener.cloud/skip: "true"
topology-spread-constraints.resources.gardener.cloud/skip: "true"
{{- end -}}

{{/* The label that Prometheus gives the metrics: the name of the Service of the ServiceMonitor. */}}
{{- define "operator.job" -}}
gardener-operator
{{- end -}}
