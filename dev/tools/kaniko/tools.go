//go:build tools

// Package tools pins the Kaniko executor, which `make up` builds from its
// module and ships as the cluster's builder image.
package tools

import _ "github.com/GoogleContainerTools/kaniko/cmd/executor"
