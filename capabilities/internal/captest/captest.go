// Package captest checks that a capability keeps to its contract.
package captest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

// Implements checks the methods of Go types against the resources of an interface in text, one for each in that order. waits
// are the methods that may wait: all that no type calls quick.
func Implements(t *testing.T, text, iface string, waits []string, types ...reflect.Type) {
	t.Helper()
	contract, err := abi.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	of := contract.Interface(iface)
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
