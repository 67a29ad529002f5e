//go:build tools

// Package tools pins the version of Kueue that the tests run.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
