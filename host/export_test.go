package host

import (
	"math"

	"github.com/stilehost/stile/abi"
)

// Validating takes all room for validations until release is called.
func (h *Host) Validating() (release func()) {
	_ = h.validating.steps.Acquire(h.closing, maxValidating) // nothing else validates
	return func() { h.validating.steps.Release(maxValidating) }
}

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
