// Package captest checks that a capability keeps to its contract.
package captest

import (
	"reflect"
	"testing"

	"github.com/stilehost/stile/abi"
)

// Implements checks the methods of Go types against the resources of an interface in text, one for each in that order.
func Implements(t *testing.T, text, iface string, types ...reflect.Type) {
	t.Helper()
	contract, err := abi.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	resources := contract.Interface(iface).Resources
	if len(resources) != len(types) {
		t.Fatalf("%s has %d resources, and there are %d types", iface, len(resources), len(types))
	}
	for i, resource := range resources {
		if _, err := abi.Implement(resource, types[i]); err != nil {
			t.Error(err)
		}
	}
}
