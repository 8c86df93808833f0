// Package abi describes in Go what crosses the boundary between host and component: WIT types and their canonical-ABI
// layout, values, capabilities, handles and errors. It needs no engine and imports nothing else of this module. Everything
// parsed or built here is immutable and safe to share between goroutines.
package abi

// Kind is the WIT type constructor of a [Type].
type Kind uint8

// The WIT type constructors.
const (
	KindBool Kind = iota + 1
	KindS8
	KindU8
	KindS16
	KindU16
	KindS32
	KindU32
	KindS64
	KindU64
	KindF32
	KindF64
	KindChar
	KindString
	KindList
	KindRecord
	KindTuple
	KindVariant
	KindEnum
	KindOption
	KindResult
	KindFlags
	KindOwn
	KindBorrow
)

// Type is one WIT type. Parsing resolves aliases (`type a = b`, `use`), so no Type is one.
type Type struct {
	Kind Kind
	// Name is the kebab-case name of a declared type. It is empty for an anonymous one such as list<u8>.
	Name string
	// Interface declares a named type. It is nil for an anonymous type, and for one that a world declares.
	Interface *Interface
	Doc       string

	Elem     *Type     // List, Option
	Fields   []Field   // Record; Tuple, with the names "0", "1", ...
	Cases    []Case    // Variant; Enum, without types
	Ok, Err  *Type     // Result; nil is `_`
	Labels   []string  // Flags
	Resource *Resource // Own, Borrow
}

// Field is one field of a record or one element of a tuple.
type Field struct {
	Name string
	Type *Type
	Doc  string
}

// Payload is the type that a case of a variant, enum, option or result carries. It is nil if the case carries nothing.
func (t *Type) Payload(at uint32) *Type {
	switch {
	case t.Kind == KindVariant, t.Kind == KindEnum:
		return t.Cases[at].Type
	case t.Kind == KindResult && at == 0:
		return t.Ok
	case t.Kind == KindResult:
		return t.Err
	case at == 1:
		return t.Elem
	default:
		return nil
	}
}

// Case is one case of a variant or an enum. A case without payload has a nil Type.
type Case struct {
	Name string
	Type *Type
	Doc  string
}

// Resource is a WIT resource type.
type Resource struct {
	Name string
	// Interface declares the resource. It is nil if a world does.
	Interface *Interface
	Doc       string
}

// Func is a function of an interface: freestanding, or a method, static or constructor of a resource.
type Func struct {
	// Name is the name in the component model: "get", "[method]client.start", "[static]r.f", "[constructor]r".
	Name      string
	Interface *Interface
	// Resource is set for methods, statics and constructors.
	Resource *Resource
	// Params includes `self: borrow<resource>` first for a method.
	Params []Field
	// Result is nil if the function returns nothing.
	Result *Type
	Doc    string
}

// Interface is a WIT interface. All slices are in the order of the WIT text.
type Interface struct {
	// Name is the full name: "stile:capability/http@0.1.0". An interface that a world declares has only a short name: "http".
	Name      string
	Doc       string
	Types     []*Type
	Resources []*Resource
	Funcs     []*Func
}

// World is a WIT world.
type World struct {
	// Name is the full name: "stile:extension/extension@0.1.0".
	Name    string
	Doc     string
	Imports []*Interface
	Exports []*Interface
	// Types and Resources are those that the world declares itself, outside any interface.
	Types     []*Type
	Resources []*Resource
	// ImportFuncs and ExportFuncs are the world's own functions, outside any interface. The functions of its resources are imports.
	ImportFuncs []*Func
	ExportFuncs []*Func
}
