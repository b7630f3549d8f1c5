{{/* The labels that select the pods of a role. Call with (dict "root" $ "component" NAME). */}}
{{- define "postroad.selector" -}}
app.kubernetes.io/name: postroad
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "postroad.labels" -}}
{{ include "postroad.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "postroad.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* The ports of each role beside that of its metrics. */}}
{{- define "postroad.ports" -}}
api: { http: 8025 }
submission: { submission: 587, submissions: 465 }
inbound: { smtp: 25 }
{{- end }}

{{- define "postroad.host" -}}
{{ (urlParse .Values.settings.http.base_url).hostname }}
{{- end }}

{{/* A value in TOML. JSON writes texts, numbers and lists of them in the same way, and numbers of values as they were. */}}
{{- define "postroad.toml" -}}
{{- if kindIs "map" . -}}
{ {{ range $index, $key := keys . | sortAlpha }}{{ if $index }}, {{ end }}{{ $key | toRawJson }} = {{ include "postroad.toml" (get $ $key) }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $index, $entry := . }}{{ if $index }}, {{ end }}{{ include "postroad.toml" $entry }}{{ end }}]
{{- else -}}
{{ . | toRawJson }}
{{- end -}}
{{- end }}

{{/* What the pods of every role, the migration and the test have in common. */}}
{{- define "postroad.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10025
  runAsGroup: 10025
  fsGroup: 10025
  seccompProfile: { type: RuntimeDefault }
  {{- if .hasLowPorts }}
  # One that Kubernetes counts as safe: ports below 1024 without further rights.
  sysctls: [{ name: net.ipv4.ip_unprivileged_port_start, value: "0" }]
  {{- end }}
{{- end }}

{{- define "postroad.container" -}}
image: {{ include "postroad.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}
