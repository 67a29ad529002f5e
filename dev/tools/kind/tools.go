//go:build tools

// Package tools pins kind, which runs the dev cluster where Docker can run privileged containers.
package tools

import (
	_ "sigs.k8s.io/kind"
)
