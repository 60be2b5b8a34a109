{{/* Short enough for every name that is derived from it. */}}
{{- define "rowgate.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select pods; takes a list of root and component. */}}
{{- define "rowgate.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "rowgate.labels" -}}
{{- $root := index . 0 -}}
{{ include "rowgate.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The namespaces that the operator manages, as a JSON list. */}}
{{- define "rowgate.namespaces" -}}
{{- default (list .Release.Namespace) .Values.namespaces | uniq | toJson -}}
{{- end -}}

{{- define "rowgate.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index . 1).image -}}
image: {{ printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}

{{/* What Pod Security `restricted` requires of a pod; the Dockerfile sets the same user. */}}
{{- define "rowgate.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "rowgate.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Where a pod may run: spread over nodes where possible. */}}
{{- define "rowgate.placement" -}}
{{- $root := index . 0 -}}
{{- $of := index $root.Values (index . 1) -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "rowgate.selector" . | nindent 8 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Networks within 0.0.0.0/0 that no webhook reaches by itself: private, shared, loopback, link-local, reserved, multicast,
of protocols, and the host of a cloud. dataplane/core/src/webhook/destination/addresses.rs holds the same ones. */}}
{{- define "rowgate.notPublic4" -}}
["0.0.0.0/8","10.0.0.0/8","100.64.0.0/10","127.0.0.0/8","168.63.129.16/32","169.254.0.0/16","172.16.0.0/12","192.0.0.0/24","192.0.2.0/24","192.31.196.0/24","192.52.193.0/24","192.88.99.0/24","192.168.0.0/16","192.175.48.0/24","198.18.0.0/15","198.51.100.0/24","203.0.113.0/24","224.0.0.0/4","240.0.0.0/4"]
{{- end -}}

{{/* The same within 2000::/3, with those that hide an IPv4 address. */}}
{{- define "rowgate.notPublic6" -}}
["2001::/23","2001:db8::/32","2002::/16","2620:4f:8000::/48","3fff::/20"]
{{- end -}}
