package captest

import (
	"strings"
	"testing"

	"github.com/stilehost/stile/wit"
)

// TestFind has an interface without a WIT file. The error says which file to write.
func TestFind(t *testing.T) {
	if of, err := find(wit.Capability(), "stile:capability/kv@0.1.0"); err != nil || len(of.Resources) != 1 {
		t.Errorf("got %v, %v", of, err)
	}
	for iface, want := range map[string]string{"stile:capability/counter@0.1.0": "write wit/deps/capability/counter.wit", "stile:capability/kv@9.0.0": "no WIT file declares the interface stile:capability/kv@9.0.0"} {
		if _, err := find(wit.Capability(), iface); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", iface, err, want)
		}
	}
}
