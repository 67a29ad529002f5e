{{/* A file of manifests/base for this release: its names, its namespaces, its labels. What an installation changes
in none but these is written down once, there; call with a list of the root and the file's name. */}}
{{- define "crewyard.base" -}}
{{- $root := index . 0 }}
{{- $name := include "crewyard.fullname" $root }}
{{- $crews := $root.Values.crews.namespace }}
{{- $text := $root.Files.Get (printf "files/base/%s.yaml" (index . 1)) | required (printf "the chart has no files/base/%s.yaml" (index . 1)) }}
{{- $text = $text | replace "crewyard-system" "<system>" }}
{{- $text = regexReplaceAll "(?m)(name: |Name: |:)crewyard-" $text (printf "${1}%s-" $name) }}
{{- $text = regexReplaceAll "(?m)(namespace: |metadata.name: |crewyard.dev/pods: )crews\\b" $text (printf "${1}%s" $crews) }}
{{- $text = $text | replace "<system>" $root.Release.Namespace }}
{{- range splitList "\n---\n" $text }}
{{- $found := . | fromYaml }}
{{- with $found.Error }}{{ fail . }}{{ end }}
{{- $_ := set $found.metadata "labels" (merge (include "crewyard.labels" $root | fromYaml) ($found.metadata.labels | default dict)) }}
{{- if or $root.Values.identity.kubernetesTokens (not (hasPrefix "ClusterRole" $found.kind)) }}
---
{{ toYaml $found }}
{{- end }}
{{- end }}
{{- end -}}
