package abi

import (
	"fmt"
	pathpkg "path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WASI says which bindings of a call serve the parts of WASI 0.2 that are authority: files and http. A zero one serves none.
type WASI struct {
	// Filesystem has the names of bindings of stile:capability/workspace by the paths at which wasi:filesystem has them, such as "/" or
	// "/data". See [MountProblem] for their form. There are at most [MaxMounts].
	Filesystem map[string]string `json:"filesystem,omitempty"`
	// HTTP is the name of the binding of stile:capability/http that serves wasi:http/outgoing-handler. It is empty if none does.
	HTTP string `json:"http,omitempty"`
}

// MaxMounts is how many paths [WASI.Filesystem] has at most.
const MaxMounts = 64

// The interfaces whose bindings serve WASI where [WASI] names them.
const (
	WorkspaceInterface = CapabilityPackage + "workspace" + ContractVersion
	HTTPInterface      = CapabilityPackage + "http" + ContractVersion
)

// IsZero reports whether it serves nothing.
func (w WASI) IsZero() bool { return len(w.Filesystem) == 0 && w.HTTP == "" }

// Only returns the part whose bindings a call has.
func (w WASI) Only(has func(binding string) bool) WASI {
	var only WASI
	for at, name := range w.Filesystem {
		if has(name) {
			if only.Filesystem == nil {
				only.Filesystem = make(map[string]string, len(w.Filesystem))
			}
			only.Filesystem[at] = name
		}
	}
	if w.HTTP != "" && has(w.HTTP) {
		only.HTTP = w.HTTP
	}
	return only
}

// Check returns an error unless the paths have their form, and each binding is there and of the right interface. interfaceOf returns
// the interface of a binding, or nothing if there is none.
func (w WASI) Check(interfaceOf func(binding string) string) error {
	if len(w.Filesystem) > MaxMounts {
		return fmt.Errorf("WASI has files at %d paths; at most %d", len(w.Filesystem), MaxMounts)
	}
	for at, name := range w.Filesystem {
		if problem := MountProblem(at); problem != "" {
			return fmt.Errorf("files of WASI: the path %.300q %s", at, problem)
		}
		if problem := BindingProblem(WorkspaceInterface, interfaceOf(name)); problem != "" {
			return fmt.Errorf("files of WASI at %s: the binding %.300q %s", at, name, problem)
		}
	}
	if w.HTTP != "" {
		if problem := BindingProblem(HTTPInterface, interfaceOf(w.HTTP)); problem != "" {
			return fmt.Errorf("http of WASI: the binding %.300q %s", w.HTTP, problem)
		}
	}
	return nil
}

// BindingProblem says why a binding of an interface cannot serve where one of another is wanted, or returns nothing. A binding that
// does not exist has no interface.
func BindingProblem(want, has string) string {
	switch has {
	case want:
		return ""
	case "":
		return "does not exist"
	default:
		return fmt.Sprintf("is of %s, not of %s", has, want)
	}
}

// MountProblem says why a path cannot be one of [WASI.Filesystem], or returns nothing.
func MountProblem(at string) string {
	const most = 4096
	switch {
	case len(at) > most:
		return fmt.Sprintf("has %d bytes; %d are allowed", len(at), most)
	case !strings.HasPrefix(at, "/"):
		return `does not begin with "/"`
	case pathpkg.Clean(at) != at:
		return fmt.Sprintf("has empty names, \".\" or \"..\": %q is the same", pathpkg.Clean(at))
	case !utf8.ValidString(at) || strings.ContainsFunc(at, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character that cannot be seen"
	default:
		return ""
	}
}
