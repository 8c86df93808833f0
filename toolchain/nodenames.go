package toolchain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/internal/absent"
)

// namesFile says what node's modules give out, beside what stands in for them.
const namesFile = ownNode + "names.json"

// nodeNames is what a module of node gives out, by name.
type nodeNames struct {
	// Lacks are functions and classes that nothing stands in for.
	Lacks []string `json:"lacks,omitempty"`
	// Data are values that are the same on all machines, such as METHODS of http.
	Data map[string]json.RawMessage `json:"data,omitempty"`
}

// namesOfNode reads namesFile: names by module.
var namesOfNode = sync.OnceValues(func() (names map[string]nodeNames, err error) {
	text, err := stile.TypeScript().ReadFile(namesFile)
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("read the names of node's modules: %w", err)
	}
	return names, nil
})

// namedPrefix begins the name of a module that gives out what stands in for one of nodeModules, and under the names that it lacks functions that throw.
// Packages import more than they use, and a bundle fails where a name is not there.
const namedPrefix = "named:"

// namedCode is the module for one of nodeModules.
func namedCode(name string, names nodeNames) (string, error) {
	reason, err := json.Marshal(absent.PartReason(name))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "export * from %[1]q;\nexport { default } from %[1]q;\nconst lacks = (name) => function () { throw new Error(name + %s); };\n", nodeModules[name], reason)
	for _, n := range names.Lacks {
		fmt.Fprintf(&b, "export const %s = /* @__PURE__ */ lacks(%[1]q);\n", n)
	}
	for _, n := range slices.Sorted(maps.Keys(names.Data)) {
		fmt.Fprintf(&b, "export const %s = %s;\n", n, names.Data[n])
	}
	return b.String(), nil
}

// absentNames is an object of JavaScript with what an absent module gives out as data, and a list of its other names. only is set if there is nothing else.
func absentNames(specifier string) (data, names string, only bool, err error) {
	all, err := namesOfNode()
	if err != nil {
		return "", "", false, err
	}
	of := all[strings.TrimPrefix(specifier, nodePrefix)]
	encoded, err := json.Marshal(of.Data)
	if err != nil {
		return "", "", false, err
	}
	lacks := slices.Clone(of.Lacks)
	if lacks == nil {
		lacks = []string{}
	}
	list, err := json.Marshal(lacks)
	if of.Data == nil {
		encoded = []byte("{}")
	}
	return string(encoded), string(list), len(of.Data) > 0 && len(lacks) == 0, err
}
