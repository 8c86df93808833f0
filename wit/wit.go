// Package wit holds the contract between host and component: the WIT text of stile:capability and stile:extension.
package wit

import _ "embed"

//go:embed capability.wit
var capability string

//go:embed extension.wit
var extension string

// Capability returns the WIT text of the package stile:capability@0.1.0: what a host can hand to a component.
func Capability() string { return capability }

// Extension returns the WIT text of the package stile:extension@0.1.0: what an extension exports.
func Extension() string { return extension }
