//go:build tools

// Package tools pins versitygw, an S3 server over a directory, which the tests
// of the store use.
package tools

import (
	_ "github.com/versity/versitygw/cmd/versitygw"
)
