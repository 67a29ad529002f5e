{{/* A file of manifests for this release: its names, its namespaces, its labels. What an installation changes
in none but these is written down once, there; call with a list of the root and the file's name
below files/. An object in the namespace of the crews is repeated for each one of crews.teams. */}}
{{- define "crewyard.base" -}}
{{- $root := index . 0 }}
{{- $name := include "crewyard.fullname" $root }}
{{- $crews := $root.Values.crews.namespace }}
{{- $text := $root.Files.Get (printf "files/%s.yaml" (index . 1)) | required (printf "the chart has no files/%s.yaml" (index . 1)) }}
{{- $text = $text | replace "crewyard-system" "<system>" }}
{{- /* By this word in their names the controller knows the installation's own policies (kube/errors.py). */}}
{{- if and (contains "kind: ValidatingAdmissionPolicy" $text) (not (contains "crewyard" $name)) }}
{{- $text = regexReplaceAll "([nN]ame: )crewyard-" $text (printf "${1}%s-of-crewyard-" $name) }}
{{- end }}
{{- $text = regexReplaceAll "(name: |Name: |:|=\"|=~\")crewyard-" $text (printf "${1}%s-" $name) }}
{{- $text = regexReplaceAll "(?m)(namespace: |metadata.name: |crewyard.dev/pods: )crews\\b" $text (printf "${1}%s" $crews) }}
{{- $text = $text | replace "<system>" $root.Release.Namespace }}
{{- with $root.Values.docsUrl }}
{{- $text = regexReplaceAll "runbook_url: docs/([a-z]+)\\.md" $text (printf "runbook_url: %s/${1}.html" .) }}
{{- end }}
{{- range splitList "\n---\n" $text }}
{{- $found := . | fromYaml }}
{{- with $found.Error }}{{ fail . }}{{ end }}
{{- if eq $found.metadata.name "crewyard" }}{{ $_ := set $found.metadata "name" $name }}{{ end }}
{{- $more := ternary $root.Values.monitoring.labels dict (hasPrefix "monitoring.coreos.com/" $found.apiVersion) }}
{{- $_ := set $found.metadata "labels" (merge (include "crewyard.labels" $root | fromYaml) ($found.metadata.labels | default dict) $more) }}
{{- if eq (printf "%s %s" $found.kind $found.metadata.name) (printf "NetworkPolicy %s-controller" $name) }}
{{- $builds := index $found.spec.ingress 0 "from" 0 }}
{{- range $root.Values.crews.teams }}
{{- $selector := dict "matchLabels" (dict "kubernetes.io/metadata.name" .) }}
{{- $rule := index $found.spec.ingress 0 }}
{{- $_ := set $rule "from" (append $rule.from (dict "namespaceSelector" $selector "podSelector" $builds.podSelector)) }}
{{- end }}
{{- end }}
{{- /* Kept at uninstall, because the namespace and its pods are: without these they would reach all. */}}
{{- if and (eq $found.kind "NetworkPolicy") (eq $found.metadata.namespace $crews) }}
{{- $_ := set $found.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- end }}
{{- if or $root.Values.identity.kubernetesTokens (not (hasPrefix "ClusterRole" $found.kind)) }}
---
{{ toYaml $found }}
{{- end }}
{{- if eq ($found.metadata.namespace | default "") $crews }}
{{- range $root.Values.crews.teams }}
{{- $_ := set $found.metadata "namespace" . }}
---
{{ toYaml $found }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
