//go:build tools

// Package tools pins oapi-codegen, which makes the Go client of the API's
// description.
package tools

import (
	_ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
)
