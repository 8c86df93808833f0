package sandbox

import (
	"reflect"
	"testing"

	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"container.limits", "process.take", "transfer.take"},
		reflect.TypeFor[*Sandbox](), reflect.TypeFor[*Process](), reflect.TypeFor[*Transfer]())
}
