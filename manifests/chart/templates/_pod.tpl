{{/* The fields below `spec` that the pods of api and controller share. */}}
{{- define "crewyard.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* The environment for egress: proxies and certificate authorities. */}}
{{- define "crewyard.wayOut" -}}
{{- range $name, $value := dict "HTTP_PROXY" .Values.proxy.http "HTTPS_PROXY" .Values.proxy.https }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if or .Values.proxy.http .Values.proxy.https }}
- name: NO_PROXY
  value: {{ include "crewyard.noProxy" . | quote }}
{{- end }}
{{- if or .Values.ca.configMap .Values.ca.secret }}
- name: CREWYARD_CA
  valueFrom:
    {{- if .Values.ca.configMap }}
    configMapKeyRef:
      name: {{ .Values.ca.configMap }}
      key: {{ .Values.ca.key }}
    {{- else }}
    secretKeyRef:
      name: {{ .Values.ca.secret }}
      key: {{ .Values.ca.key }}
    {{- end }}
# Also for commands that run in the pod later; the process itself writes the file first.
- name: SSL_CERT_FILE
  value: /tmp/crewyard-authorities.crt
- name: REQUESTS_CA_BUNDLE
  value: /tmp/crewyard-authorities.crt
{{- end }}
{{- end -}}

{{/* Connections within the cluster use no proxy: the kube-apiserver by its address, Services by their names. */}}
{{- define "crewyard.noProxy" -}}
{{- join "," (compact (list "localhost" "127.0.0.1" ".svc" ".cluster.local" "$(KUBERNETES_SERVICE_HOST)" .Values.proxy.except)) -}}
{{- end -}}

{{- define "crewyard.command" -}}
{{- $root := index . 0 -}}
[python3, {{ if or $root.Values.ca.configMap $root.Values.ca.secret }}-m, egress.ca_bundle, python3, {{ end }}-m, {{ index . 1 }}]
{{- end -}}

{{/* A hash of what pods get from Secrets and the certificate authorities: the next upgrade restarts the pods after a
change. A tool that only renders cannot read them and gets the same hash each time. */}}
{{- define "crewyard.secrets" -}}
{{- $found := list (include "crewyard.tokenKey" .) -}}
{{- range list .Values.tokens.existingSecret .Values.adminKeys.existingSecret .Values.signing.existingSecret .Values.database.existingSecret .Values.rateLimit.existingSecret .Values.telemetry.otlp.existingSecret .Values.signIn.existingSecret .Values.bucket.existingSecret .Values.ca.secret -}}
{{- with . }}{{ $found = append $found ((lookup "v1" "Secret" $.Release.Namespace .).data | default dict | toJson) }}{{ end -}}
{{- end -}}
{{/* Not those of internalTls: API server and controller read the files again by themselves. */}}
{{- with .Values.ca.configMap -}}
{{- $found = append $found ((lookup "v1" "ConfigMap" $.Release.Namespace .).data | default dict | toJson) -}}
{{- end -}}
{{- $found | toJson | sha256sum -}}
{{- end -}}

{{/* The key of all tokens in base64, drawn once in a rendering; empty if the user provides the Secret. */}}
{{- define "crewyard.tokenKey" -}}
{{- if not .Values.tokens.existingSecret -}}
{{- $name := include "crewyard.tokenSecret" . -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- if $old -}}
{{- required (printf "the Secret %s has no entry key: delete it, or put a key of at least 16 characters there" $name) (index ($old.data | default dict) "key") -}}
{{- else -}}
{{- if not (hasKey .Values.tokens "drawn") }}{{ $_ := set .Values.tokens "drawn" (randAlphaNum 64 | b64enc) }}{{ end -}}
{{- .Values.tokens.drawn -}}
{{- end -}}
{{- end -}}
{{- end -}}
