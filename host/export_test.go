package host

import (
	"math"

	"github.com/stilehost/stile/abi"
)

// RoundTrip writes a value as a recording has it, and reads it.
func RoundTrip(t *abi.Type, v abi.Value) (abi.Value, error) {
	e := encoder{max: math.MaxInt}
	e.value(t, v)
	d := &decoder{rest: e.buf}
	back := d.value(t)
	if len(d.rest) > 0 {
		d.fail(errMalformed)
	}
	return back, d.err
}
