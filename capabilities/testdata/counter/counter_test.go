package counter

import (
	"reflect"
	"testing"

	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, nil, reflect.TypeFor[*Count]())
}
