package codecheck

import (
	"bytes"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/wasmbin"
)

// maxFunctionName is the longest name of a function, in bytes. The engine writes 20 names into the backtrace of a trap.
const maxFunctionName = 16 << 10

// unmangle changes names in a module that the engine would demangle as C++, or as Rust with a much longer result. The engine
// demangles names for the backtrace of a trap, and 300 bytes can expand to terabytes. If a name is too long, unmangle hides the
// names of all functions of the module.
func unmangle(r *wasmbin.Reader) {
	const functions, unknown = 1, 0x7f
	if r.Name() != "name" {
		return
	}
	for r.Len() > 0 {
		id := &r.Bytes[r.Pos]
		r.Byte()
		part := r.Sub()
		if *id != functions {
			continue
		}
		for left := int(part.U32()); left > 0 && part.Len() > 0; left-- { // the engine also accepts fewer
			part.U32()
			name := part.Vector()
			if len(name) > maxFunctionName {
				*id = unknown
				break
			}
			if !plainName(name) {
				for i := bytes.Index(name, mangled); i >= 0; i = bytes.Index(name, mangled) {
					name[i+1] = 'z'
				}
			}
			if repeats(name) {
				name[bytes.IndexByte(name, 'R')] = 'r'
			}
		}
	}
}

var mangled = []byte("_Z")

var newerRust = lazyregexp.New(`^_{0,2}R[A-Z]`)

// repeats reports whether a name has Rust's newer form and may expand to a much longer text. The letter B refers back to an earlier
// place, which can contain that B itself.
func repeats(name []byte) bool {
	const short = 200
	n := bytes.Count(name, []byte("B"))
	return newerRust.Match(name) && (n > 1 || n == 1 && len(name) > short)
}

// plainName reports whether a mangled name is only a path, such as _ZN4core5panic17h0123456789abcdefE, like the names of Rust.
func plainName(name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte("_ZN"))
	for ok && len(rest) > 1 {
		n, digits := 0, 0
		for ; digits < min(3, len(rest)) && '0' <= rest[digits] && rest[digits] <= '9'; digits++ {
			n = 10*n + int(rest[digits]-'0')
		}
		if ok = digits > 0 && digits+n < len(rest); ok {
			rest = rest[digits+n:]
		}
	}
	return ok && string(rest) == "E"
}
