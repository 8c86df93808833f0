package captest

import (
	"strings"

	"github.com/stilehost/stile/abi"
)

// Meter is an [abi.Meter] that allows a number of bytes.
type Meter struct{ Left int64 }

// Charge implements [abi.Meter].
func (m *Meter) Charge(n int64) error {
	if n > m.Left {
		return abi.ErrExhausted
	}
	m.Left -= n
	return nil
}

// GrantIn returns the grant in the remedy of a denial, as a manifest has it under the name of a binding. It is empty without a remedy.
func GrantIn(d *abi.Denial) string {
	if d.Wants == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(d.Wants.Remedy("x"), `"bindings": { "x": `), " }")
}
