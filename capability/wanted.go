package capability

import (
	"fmt"

	"github.com/stilehost/stile/abi"
)

// Wanted is the grant that a denied operation needs, as [abi.Denial] carries it.
type Wanted struct{ Grant Grant }

// Remedy implements [abi.Wants].
func (w Wanted) Remedy(binding string) string {
	k := w.Grant.Kind()
	if k.Parse == nil { // no manifest can ask for it
		return ""
	}
	return fmt.Sprintf(`"bindings": { %q: %s }`, binding, JSON(map[string]any{k.Name: w.Grant.Document()}))
}

// Operators is the grant that a denied operation needs and that no manifest can ask for: only the person who starts a call can give it.
type Operators struct{ Grant Grant }

// Remedy implements [abi.Wants]. It is empty.
func (Operators) Remedy(string) string { return "" }

// lacking represents any grant of a kind. Only the form of such a grant is known.
type lacking struct{ kind, example string }

// Remedy implements [abi.Wants].
func (l lacking) Remedy(binding string) string {
	return fmt.Sprintf(`"bindings": { %q: { %q: %s } }`, binding, l.kind, l.example)
}

// Wants returns the grant that a call lacks if it has no binding of a WIT interface. It is meant for the options of a host.
func (s Set) Wants(iface string) abi.Wants {
	if k := s.Of(iface); k != nil {
		return lacking{k.Name, k.Example}
	}
	return lacking{iface, "{}"}
}
