package host

import (
	"math"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/schema"
	"github.com/stilehost/stile/internal/turns"
)

// Validating takes all room for validations, for a user. The caller gives schema.MaxValidating back.
func (h *Host) Validating(t testing.TB, user string) *turns.Places {
	t.Helper()
	return take(t, h.validating.Steps, user, schema.MaxValidating)
}

// Decoding is like Validating for large values that are decoded to be validated.
func (h *Host) Decoding(t testing.TB) (release func()) {
	t.Helper()
	p := take(t, h.validating.Decoded, "", schema.MaxDecoded)
	return func() { p.GiveBack(schema.MaxDecoded) }
}

func take(t testing.TB, p *turns.Places, user string, n int64) *turns.Places {
	t.Helper()
	if err := p.TakeFor(t.Context(), user, n); err != nil {
		t.Fatal(err)
	}
	return p
}

// RoundTrip writes a value in its recorded form and reads it back.
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

// Packed returns the bytes of Options.PackedMemory that are in use.
func (h *Host) Packed() int64 { return h.options.PackedMemory - h.packed.Free() }

// Preparing reports whether the host reads the memory of a fresh instance.
func (h *Host) Preparing() bool {
	if h.pristine.TryLock() {
		h.pristine.Unlock()
		return false
	}
	return true
}

// WaitWith sets how long a call waits with its slot. Call it before all calls.
func (h *Host) WaitWith(patience time.Duration) { h.patience = patience }
