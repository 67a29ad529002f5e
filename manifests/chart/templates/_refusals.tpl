{{/* What the schema cannot say of two values together. */}}
{{- define "crewyard.refusals" -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.database.existingSecret) -}}
{{- fail (printf "api.replicas is %d, but the index is SQLite, which has one writer: name a Secret with the address of a PostgreSQL in database.existingSecret, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.bucket.url) -}}
{{- fail (printf "api.replicas is %d, but artifacts would be on a volume that one replica has: set bucket.url, or set api.replicas to 1" (int .Values.api.replicas)) -}}
{{- end -}}
{{- if and .Values.ca.configMap .Values.ca.secret -}}
{{- fail "ca.configMap and ca.secret are both set: name one of them" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true: set ingress.host to the name that clients use" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- fail "gateway.enabled is true: name the Gateway in gateway.parentRefs" -}}
{{- end -}}
{{- if and .Values.bucket.direct (not .Values.bucket.publicUrl) -}}
{{- fail "bucket.direct is true: set bucket.publicUrl to the address at which clients reach the bucket" -}}
{{- end -}}
{{- if eq .Values.crews.namespace .Release.Namespace -}}
{{- fail (printf "crews.namespace is %s, which is the release's own: crews run beside nothing that holds a Secret of the service; name another one" .Values.crews.namespace) -}}
{{- end -}}
{{- if hasKey .Values.settings "CREWYARD_TOKEN_KEY" -}}
{{- fail "settings.CREWYARD_TOKEN_KEY would lie in a ConfigMap: use tokens.existingSecret" -}}
{{- end -}}
{{- if and (hasKey .Values.settings "CREWYARD_DATABASE_URL") -}}
{{- fail "settings.CREWYARD_DATABASE_URL would lie in a ConfigMap: use database.existingSecret" -}}
{{- end -}}
{{- end -}}
