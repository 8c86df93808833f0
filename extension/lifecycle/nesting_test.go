package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
)

// The policy knows no host, and its limit of nesting is the host's.
func TestNestingOfPolicy(t *testing.T) {
	if got := policy.Default().Limits.Nesting; got != host.DefaultLimits().Nesting {
		t.Errorf("the default is %d", got)
	}
	for n, ok := range map[int]bool{host.MaxNesting: true, host.MaxNesting + 1: false} {
		if _, err := policy.Parse(fmt.Appendf(nil, `{"limits": {"nesting": %d}}`, n)); (err == nil) != ok {
			t.Errorf("%d: %v", n, err)
		}
	}
}
