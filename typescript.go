// Package stile holds the TypeScript of which the image of every extension is made: the prelude, and the sugar of each kind of
// capability, which lies in the kind's folder together with its types. It imports nothing.
package stile

import "embed"

//go:embed capabilities/*/*.ts capabilities/*/sugar.json toolchain/prelude/*.ts toolchain/prelude/parts/*.ts toolchain/node/*.ts toolchain/node/names.json
var typeScript embed.FS

// TypeScript returns these files, by their paths in the repository.
func TypeScript() embed.FS { return typeScript }
