// Package typescript embeds the declarations that authors of extensions write against.
package typescript

import _ "embed"

//go:embed index.d.ts
var index string

//go:embed capabilities.d.ts
var capabilities string

//go:embed globals.d.ts
var globals string

//go:embed author.md
var author string

// Author returns what the author of an extension has to know to write one without reading more: the manifest, the form of the code, what
// bindings take and return, what the platform has, and the form of tests. It is a part of the texts that models are given.
func Author() string { return author }

// Index returns the declarations of the module "stile".
func Index() string { return index }

// Capabilities returns the declarations of the capability interfaces, which Index refers to as `wit`.
func Capabilities() string { return capabilities }

// Globals returns the declarations of the web APIs, to be used in place of lib.dom.d.ts.
func Globals() string { return globals }
