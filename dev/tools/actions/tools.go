//go:build tools

// Package tools pins act, which runs workflows on this machine without
// containers, and actionlint: tests/actions uses both.
package tools

import (
	_ "github.com/nektos/act"
	_ "github.com/rhysd/actionlint/cmd/actionlint"
)
