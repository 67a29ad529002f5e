//go:build tools

// Package tools pins kwok, which plays nodes that have no machine, for measurements of scale.
package tools

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
