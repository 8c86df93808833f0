package extension

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// ScopeKind says who sees an extension.
type ScopeKind string

// The kinds, from narrow to wide.
const (
	Agent  ScopeKind = "agent"
	User   ScopeKind = "user"
	Shared ScopeKind = "shared"
)

// Local is the owner for the one person at this machine.
const Local = "local"

// Scope says who sees an extension: one agent, one user, or everybody. The zero value is no scope. Scopes are comparable.
type Scope struct {
	Kind ScopeKind
	// Owner is the name of the agent or the user: a-z, 0-9, "_" and "-", at most 64 bytes. It is empty for Shared.
	Owner string
}

var scopeText = lazyregexp.New(`^(shared|(user|agent):` + capability.OwnerName + `)$`)

// ScopeError reports a text that is not a scope.
type ScopeError struct{ Text string }

// Error implements error.
func (e *ScopeError) Error() string {
	return fmt.Sprintf(`%s is not a scope; write "shared", "user:NAME" or "agent:NAME", with a name of a-z, 0-9, "_" and "-"`, jsonform.Quote(e.Text))
}

// ParseScope reads the form of [Scope.String]. An error is a *[ScopeError].
func ParseScope(text string) (Scope, error) {
	if !scopeText.MatchString(text) {
		return Scope{}, &ScopeError{text}
	}
	kind, owner, _ := strings.Cut(text, ":")
	return Scope{ScopeKind(kind), owner}, nil
}

// String returns "shared", "user:tom" or "agent:claude".
func (s Scope) String() string {
	if s.Kind == Shared {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Owner
}

// MarshalText implements encoding.TextMarshaler. It fails for what [ParseScope] does not read.
func (s Scope) MarshalText() ([]byte, error) {
	_, err := ParseScope(s.String())
	return []byte(s.String()), err
}

// UnmarshalText implements encoding.TextUnmarshaler with [ParseScope].
func (s *Scope) UnmarshalText(text []byte) error {
	var err error
	*s, err = ParseScope(string(text))
	return err
}

// Compare orders scopes from narrow to wide, and scopes of one kind by owner.
func (s Scope) Compare(other Scope) int {
	return cmp.Or(cmp.Compare(s.Kind.width(), other.Kind.width()), cmp.Compare(s.Owner, other.Owner))
}

// Narrower reports whether s is narrower than other: a tool in s hides a tool of the same name in other.
func (s Scope) Narrower(other Scope) bool { return s.Kind.width() < other.Kind.width() }

func (k ScopeKind) width() int {
	switch k {
	case Agent:
		return 0
	case User:
		return 1
	default:
		return 2
	}
}

// Visible returns the scopes that an agent of a user sees, the narrowest first. Either name may be empty, which leaves out that
// scope.
func Visible(user, agent string) []Scope {
	var all []Scope
	if agent != "" {
		all = append(all, Scope{Agent, agent})
	}
	if user != "" {
		all = append(all, Scope{User, user})
	}
	return append(all, Scope{Kind: Shared})
}

// store returns the prefix of the names of a scope's stores. No extension's name has a ".". Names without a prefix are the person's own, so that
// no name of an extension is one of them.
func (s Scope) store() string {
	if s.Kind == Shared {
		return "shared."
	}
	return string(s.Kind) + "." + s.Owner + "."
}
