{{/* The prefix of all names; it contains the release's name, so two releases share no name. */}}
{{- define "crewyard.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{ (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "crewyard.labels" -}}
app.kubernetes.io/part-of: crewyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An object with the installation's entries over the chart's; a duplicate key would be invalid YAML. */}}
{{- define "crewyard.over" -}}
{{- $found := index . 0 -}}
{{- range $key, $value := index . 1 }}{{ $_ := set $found $key $value }}{{ end -}}
{{ toYaml $found }}
{{- end -}}

{{/* The selector labels of a Deployment; they are immutable. */}}
{{- define "crewyard.selector" -}}
app.kubernetes.io/name: crewyard
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "crewyard.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "crewyard.apiUrl" -}}
http://{{ include "crewyard.fullname" . }}-api.{{ .Release.Namespace }}.svc:{{ .Values.api.service.port }}
{{- end -}}

{{/* Where API server and controller have the certificate of their TLS ports for pods. */}}
{{- define "crewyard.tlsDirectory" -}}
/etc/crewyard/internal-tls
{{- end -}}

{{/* Where the controller has the authorities that pods accept, if they are not beside the certificate. */}}
{{- define "crewyard.caDirectory" -}}
/etc/crewyard/internal-ca
{{- end -}}

{{- define "crewyard.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{ .Values.publicUrl }}
{{- else if and .Values.ingress.enabled .Values.ingress.host -}}
{{ ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.host }}
{{- else -}}
{{ include "crewyard.apiUrl" . }}
{{- end -}}
{{- end -}}

{{/* The paths that a gateway or an ingress routes, besides /. Not /metrics, which shows all projects, and not
/internal, which only pods of crews call. */}}
{{- define "crewyard.publicPaths" -}}
/v1 /console /docs /openapi.json /healthz /readyz
{{- end -}}

{{- define "crewyard.tokenSecret" -}}
{{ .Values.tokens.existingSecret | default (printf "%s-tokens" (include "crewyard.fullname" .)) }}
{{- end -}}

{{/* Without a database or a bucket the volume is needed. */}}
{{- define "crewyard.needsVolume" -}}
{{- if not (and .Values.database.existingSecret .Values.bucket.url) }}yes{{ end -}}
{{- end -}}

{{- define "crewyard.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-data" (include "crewyard.fullname" .)) }}
{{- end -}}
