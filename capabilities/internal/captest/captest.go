// Package captest checks that a capability keeps its contract.
package captest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

// Implements checks the methods of Go types against the resources of an interface in text, one for each in that order. waits are
// the methods that may wait: all that no type declares as quick. Every list must have a maximum.
func Implements(t *testing.T, text, iface string, waits []string, types ...reflect.Type) {
	t.Helper()
	of, err := find(text, iface)
	if err != nil {
		t.Fatal(err)
	}
	if len(of.Resources) != len(types) {
		t.Fatalf("%s has %d resources, and there are %d types", iface, len(of.Resources), len(types))
	}
	var slow []string
	for i, resource := range of.Resources {
		implementation, err := abi.Implement(resource, types[i])
		if err != nil {
			t.Error(err)
			continue
		}
		var most map[string]int
		if b, ok := reflect.TypeAssert[abi.Bounded](reflect.Zero(types[i])); ok {
			most = b.Lists()
		}
		lists := listsOf(of, resource)
		for _, place := range lists {
			if most[place] == 0 {
				t.Errorf("the list %s has no maximum: add it to Lists of %s", place, types[i])
			}
		}
		for place := range most {
			if !slices.Contains(lists, place) {
				t.Errorf("%s has no list %s", resource.Name, place)
			}
		}
		var quick []string
		if q, ok := reflect.TypeAssert[abi.Quick](reflect.Zero(types[i])); ok {
			quick = q.Quick()
		}
		for _, name := range quick {
			if name != "get" && implementation.Method("[method]"+name) == nil {
				t.Errorf("%s calls %s quick, which is no method of %s", types[i], name, resource.Name)
			}
		}
		for _, f := range of.Funcs {
			if name := strings.TrimPrefix(f.Name, "[method]"); f.Resource == resource && !slices.Contains(quick, name) {
				slow = append(slow, name)
			}
		}
	}
	slices.Sort(slow)
	slices.Sort(waits)
	if !slices.Equal(slow, waits) {
		t.Errorf("%s: %q may wait, want %q", iface, slow, waits)
	}
}

// find returns an interface in text.
func find(text, iface string) (*abi.Interface, error) {
	contract, err := abi.Parse(text)
	if err != nil {
		return nil, err
	}
	if of := contract.Interface(iface); of != nil {
		return of, nil
	}
	_, name, _ := strings.Cut(iface, "/")
	name, _, _ = strings.Cut(name, "@")
	return nil, fmt.Errorf("no WIT file declares the interface %s: write wit/deps/capability/%s.wit with `interface %[2]s { ... }` (docs/capabilities.md has the steps)", iface, name)
}

// listsOf returns the places of the lists in the methods of a resource; see [abi.Bounded].
func listsOf(i *abi.Interface, r *abi.Resource) (places []string) {
	var walk func(t *abi.Type, place string)
	walk = func(t *abi.Type, place string) {
		if t == nil {
			return
		}
		if t.Kind == abi.KindList {
			places = append(places, place)
		}
		for _, f := range t.Fields {
			walk(f.Type, place+"."+f.Name)
		}
		for _, c := range t.Cases {
			walk(c.Type, place+"."+c.Name)
		}
		walk(t.Elem, place)
		walk(t.Ok, place)
		walk(t.Err, place+".error")
	}
	for _, f := range i.Funcs {
		if f.Resource != r {
			continue
		}
		place := strings.TrimPrefix(f.Name, "[method]")
		walk(f.Result, place+".result")
		for _, p := range f.Params {
			walk(p.Type, place+"."+p.Name)
		}
	}
	return places
}
