// Package typescript holds the declarations that authors of extensions write against, for whoever has to show them.
package typescript

import _ "embed"

//go:embed index.d.ts
var index string

//go:embed capabilities.d.ts
var capabilities string

// Index returns the declarations of the module "stile".
func Index() string { return index }

// Capabilities returns the declarations of the capability interfaces, which Index refers to as `wit`.
func Capabilities() string { return capabilities }
