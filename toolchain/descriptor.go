package toolchain

import (
	"encoding/json"
	"strings"

	"github.com/stilehost/stile/abi"
)

// The descriptor describes a world for prelude/bindings.ts: names as JavaScript has them, layouts, and numbers of operations.
type descriptor struct {
	Types     []typeInfo      `json:"types"`
	Resources []resourceInfo  `json:"resources"`
	Imports   []interfaceInfo `json:"imports"`
	Exports   []interfaceInfo `json:"exports"`
	// Bindings are known names of the env, with their interfaces without versions.
	Bindings map[string]string `json:"bindings"`
	// Files is the binding whose files node:fs has.
	Files string `json:"files,omitempty"`
	// Results is the size of the largest result of an import, in bytes.
	Results uint32 `json:"results"`
	// SourceMap is the bundle's source map, as JSON, for Error.stack.
	SourceMap string `json:"sourceMap,omitempty"`
}

type typeInfo struct {
	Kind         string      `json:"kind"`
	Name         string      `json:"name,omitempty"`
	Size         uint32      `json:"size"`
	Align        uint32      `json:"align"`
	Flat         string      `json:"flat"`
	Element      *int        `json:"element,omitempty"`
	Fields       []fieldInfo `json:"fields,omitempty"`
	Cases        []caseInfo  `json:"cases,omitempty"`
	Discriminant uint32      `json:"discriminant,omitempty"`
	Payload      uint32      `json:"payload,omitempty"`
	Labels       []string    `json:"labels,omitempty"`
	Resource     *int        `json:"resource,omitempty"`
}

type fieldInfo struct {
	Name   string `json:"name"`
	Type   int    `json:"type"`
	Offset uint32 `json:"offset"`
}

type caseInfo struct {
	Name string `json:"name"`
	Type *int   `json:"type"`
}

type resourceInfo struct {
	Class     string `json:"class"`
	Interface string `json:"interface"`
	Drop      int    `json:"drop"`
}

type interfaceInfo struct {
	Name      string         `json:"name"`
	Functions []functionInfo `json:"functions"`
}

type functionInfo struct {
	Name      string      `json:"name"`
	Label     string      `json:"label"`
	Kind      string      `json:"kind"`
	Resource  *int        `json:"resource,omitempty"`
	Operation int         `json:"operation"`
	Params    []fieldInfo `json:"params"`
	Spilled   *int        `json:"spilled"`
	Result    *int        `json:"result"`
	Indirect  bool        `json:"indirect"`
}

// describer makes a descriptor. Types that look the same share an entry.
type describer struct {
	out       descriptor
	types     map[string]int
	resources map[*abi.Resource]int
}

// describe gives the descriptor of a world, as JSON.
func describe(l *linkage) ([]byte, error) {
	d := &describer{types: map[string]int{}, resources: map[*abi.Resource]int{}}
	d.out = descriptor{
		Types: []typeInfo{}, Resources: []resourceInfo{}, Imports: []interfaceInfo{}, Exports: []interfaceInfo{},
		Bindings: map[string]string{}, Files: l.files, SourceMap: l.sourceMap,
	}
	for name, iface := range l.bindings {
		d.out.Bindings[name], _, _ = strings.Cut(iface, "@")
	}
	for i, r := range l.drops {
		d.resources[r] = i
		d.out.Resources = append(d.out.Resources, resourceInfo{pascal(r.Name), unversioned(r.Interface), opImport + len(l.calls) + i})
	}
	operation := opImport
	for _, i := range l.imports {
		info := interfaceInfo{Name: unversioned(i), Functions: []functionInfo{}}
		for _, f := range i.Funcs {
			info.Functions = append(info.Functions, d.function(f, operation, true))
			operation++
			if f.Result != nil {
				d.out.Results = max(d.out.Results, f.Result.Size())
			}
		}
		d.out.Imports = append(d.out.Imports, info)
	}
	for _, i := range l.exports {
		if i.Name == abi.ExtensionMemory { // the bindings serve it
			continue
		}
		info := interfaceInfo{Name: unversioned(i), Functions: []functionInfo{}}
		for _, f := range i.Funcs {
			info.Functions = append(info.Functions, d.function(f, 0, false))
		}
		d.out.Exports = append(d.out.Exports, info)
	}
	return json.Marshal(d.out)
}

func (d *describer) function(f *abi.Func, operation int, lower bool) functionInfo {
	kind, name := "function", f.Name
	if prefix, rest, ok := strings.Cut(strings.TrimPrefix(f.Name, "["), "]"); ok {
		kind, name = prefix, rest
	}
	info := functionInfo{
		Kind: kind, Label: name, Operation: operation, Params: []fieldInfo{},
		Indirect: f.Result != nil && len(f.Result.Flat()) > 1,
	}
	if f.Resource != nil {
		index := d.resources[f.Resource]
		info.Resource = &index
		_, name, _ = strings.Cut(name, ".")
	}
	info.Name = camel(name)
	flat := 0
	for _, p := range f.Params {
		info.Params = append(info.Params, fieldInfo{Name: camel(p.Name), Type: *d.typ(p.Type)})
		flat += len(p.Type.Flat())
	}
	if params, _ := f.Core(false); len(params) < flat {
		info.Spilled = d.typ(&abi.Type{Kind: abi.KindTuple, Fields: f.Params})
	}
	info.Result = d.typ(f.Result)
	return info
}

// typ is the index of a type, or nil for none.
func (d *describer) typ(t *abi.Type) *int {
	if t == nil {
		return nil
	}
	info := typeInfo{Kind: kindNames[t.Kind], Name: t.Name, Size: t.Size(), Align: t.Align(), Labels: camels(t.Labels)}
	for _, c := range t.Flat() {
		info.Flat += map[abi.CoreType]string{abi.CoreI32: "i", abi.CoreI64: "l", abi.CoreF32: "f", abi.CoreF64: "d"}[c]
	}
	info.Element = d.typ(t.Elem)
	offsets := t.Offsets()
	for i, f := range t.Fields {
		info.Fields = append(info.Fields, fieldInfo{camel(f.Name), *d.typ(f.Type), offsets[i]})
	}
	for _, c := range t.Cases {
		info.Cases = append(info.Cases, caseInfo{c.Name, d.typ(c.Type)})
	}
	if t.Kind == abi.KindResult {
		info.Cases = []caseInfo{{"ok", d.typ(t.Ok)}, {"err", d.typ(t.Err)}}
	}
	if info.Discriminant = t.DiscriminantSize(); info.Discriminant > 0 {
		info.Payload = t.PayloadOffset()
	}
	if t.Resource != nil {
		index := d.resources[t.Resource]
		info.Resource = &index
	}
	key, err := json.Marshal(info)
	if err != nil {
		panic(err) // JSON can express all its values
	}
	index, ok := d.types[string(key)]
	if !ok {
		index = len(d.out.Types)
		d.types[string(key)] = index
		d.out.Types = append(d.out.Types, info)
	}
	return &index
}

var kindNames = [...]string{
	abi.KindBool: "bool", abi.KindS8: "s8", abi.KindU8: "u8", abi.KindS16: "s16", abi.KindU16: "u16", abi.KindS32: "s32",
	abi.KindU32: "u32", abi.KindS64: "s64", abi.KindU64: "u64", abi.KindF32: "f32", abi.KindF64: "f64", abi.KindChar: "char",
	abi.KindString: "string", abi.KindList: "list", abi.KindRecord: "record", abi.KindTuple: "tuple",
	abi.KindVariant: "variant", abi.KindEnum: "enum", abi.KindOption: "option", abi.KindResult: "result",
	abi.KindFlags: "flags", abi.KindOwn: "own", abi.KindBorrow: "borrow",
}

func camels(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, camel(n))
	}
	return out
}

// pascal turns "compare-and-set" into "CompareAndSet".
func pascal(kebab string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(kebab, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// camel turns "compare-and-set" into "compareAndSet".
func camel(kebab string) string {
	first, rest, _ := strings.Cut(kebab, "-")
	return first + pascal(rest)
}

// unversioned returns the name of an interface in JavaScript: "stile:capability/kv".
func unversioned(i *abi.Interface) string {
	name, _, _ := strings.Cut(i.Name, "@")
	return name
}
