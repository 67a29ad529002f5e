{{/* What the pods of api and controller have alike, below `spec`. */}}
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

{{/* The environment that has the ways out: proxies and authorities. */}}
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
- name: SSL_CERT_FILE
  value: /etc/crewyard/ca/{{ .Values.ca.key }}
- name: REQUESTS_CA_BUNDLE
  value: /etc/crewyard/ca/{{ .Values.ca.key }}
{{- end }}
{{- end -}}

{{/* What is in the cluster is never asked for by a proxy: the apiserver by its address, Services by their names. */}}
{{- define "crewyard.noProxy" -}}
{{- join "," (compact (list "localhost" "127.0.0.1" ".svc" ".cluster.local" "$(KUBERNETES_SERVICE_HOST)" .Values.proxy.except)) -}}
{{- end -}}

{{- define "crewyard.caVolume" -}}
{{- if .Values.ca.configMap }}
- name: ca
  configMap:
    name: {{ .Values.ca.configMap }}
{{- else if .Values.ca.secret }}
- name: ca
  secret:
    secretName: {{ .Values.ca.secret }}
{{- end }}
{{- end -}}

{{- define "crewyard.caMount" -}}
{{- if or .Values.ca.configMap .Values.ca.secret }}
- name: ca
  mountPath: /etc/crewyard/ca
  readOnly: true
{{- end }}
{{- end -}}
