//go:build tools

// Package tools pins helm, which installs the chart, and kubeconform, which
// holds manifests against schemas: tests/cluster/install uses both.
package tools

import (
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v3/cmd/helm"
)
