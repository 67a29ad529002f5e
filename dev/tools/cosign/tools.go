//go:build tools

// Package tools pins cosign, which verifies the attestations of images like a user of them.
package tools

import (
	_ "github.com/sigstore/cosign/v2/cmd/cosign"
)
