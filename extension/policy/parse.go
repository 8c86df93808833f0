package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/rung"
)

// ParseError reports the first problem of a policy.
type ParseError struct {
	// Path leads to the value, e.g. "approve[0].scopes"; empty for the policy itself.
	Path string
	// Line and Column count from 1; a column is a character.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Instead is what to write.
	Instead string
}

// Error implements error.
func (e *ParseError) Error() string { return (*jsonform.Error)(e).In("policy") }

const (
	maxApprovals = 100
	maxPersons   = 100
	maxPackages  = 1000
	maxLadders   = 100
	maxPerson    = 128 // bytes

	examplePolicy   = `{"ceiling": {"permissions": {"workspace": "read"}}}`
	exampleBindings = `{"permissions": {"workspace": "read"}}`
	exampleLadder   = `{"rung": "isolate", "permissions": {"workspace": "read-write"}}`
	exampleLimits   = `{"buildsPerHour": 60}`
)

// Parse reads a policy of at most 256 KiB. An error is a *[ParseError].
func Parse(text []byte) (*Policy, error) { return ParseWith(capabilities.Builtin, text) }

// ParseWith is [Parse] with other kinds of capabilities.
func ParseWith(kinds capability.Set, text []byte) (*Policy, error) {
	r := reader{jsonform.New("policy", text), kinds}
	p := r.policy()
	if r.Err != nil {
		return nil, (*ParseError)(r.Err)
	}
	return p, nil
}

type reader struct {
	*jsonform.Reader
	kinds capability.Set
}

func (r reader) policy() *Policy {
	p := Default()
	root := r.Parse()
	if r.Err != nil {
		return nil
	}
	fields := r.Fields(root, examplePolicy, []string{"ceiling", "approve", "packages", "updates", "persons", "limits", "ladder", "hosts"})
	if n := fields["ceiling"]; n != nil {
		p.Ceiling = r.ceiling(n)
	}
	if n := fields["approve"]; n != nil {
		p.Approve = nil
		for _, item := range r.list(n, maxApprovals, "["+exampleBindings+"]") {
			p.Approve = append(p.Approve, r.approval(item))
		}
	}
	if n := fields["packages"]; n != nil {
		for _, item := range r.list(n, maxPackages, `["zod"]`) {
			p.Packages = append(p.Packages, r.packageName(item))
		}
	}
	if n := fields["updates"]; n != nil {
		p.Updates, p.updatesLine = one(r, n, Ask, Same), r.Line(n.Offset)
	}
	if n := fields["persons"]; n != nil {
		for _, item := range r.list(n, maxPersons, `["my-editor"]`) {
			p.Persons = append(p.Persons, r.person(item))
		}
	}
	if n := fields["limits"]; n != nil {
		r.limits(n, &p.Limits)
	}
	if n := fields["ladder"]; n != nil {
		for _, item := range r.list(n, maxLadders, "["+exampleLadder+"]") {
			p.Ladder = append(p.Ladder, r.ladder(item))
		}
	}
	if n := fields["hosts"]; n != nil {
		p.Hosts = r.hosts(n)
	}
	return p
}

// list is like Items, but the list may be empty.
func (r reader) list(n *jsonform.Node, limit int, example string) []*jsonform.Node {
	if items, ok := n.Value.([]*jsonform.Node); ok && len(items) == 0 {
		return nil
	}
	return r.Items(n, limit, example)
}

func (r reader) ceiling(n *jsonform.Node) *Ceiling {
	fields := r.Fields(n, exampleBindings, []string{"permissions", "bindings"})
	c := &Ceiling{Bindings: extension.ReadBindings(r.Reader, r.kinds, fields["permissions"], fields["bindings"]), Line: r.Line(n.Offset)}
	if rules := extension.Rules(c.Bindings); rules > http.MaxRules && r.Err == nil {
		r.Fail(n, fmt.Sprintf("at most %d", http.MaxRules), "the ceiling has %d http rules", rules)
	}
	return c
}

func (r reader) approval(n *jsonform.Node) Approval {
	fields := r.Fields(n, exampleBindings, []string{"scopes", "permissions", "bindings"})
	a := Approval{Scopes: []Scopes{Own}, Line: r.Line(n.Offset)}
	if scopes := fields["scopes"]; scopes != nil {
		a.Scopes = nil
		for _, item := range r.Items(scopes, 4, `["own"]`) {
			s := one(r, item, Own, Agents, Users, Everybody)
			if slices.Contains(a.Scopes, s) && r.Err == nil {
				r.Fail(item, "each scope once", "the scope %s is here twice", jsonform.Quote(string(s)))
			}
			a.Scopes = append(a.Scopes, s)
		}
	}
	a.Bindings = extension.ReadBindings(r.Reader, r.kinds, fields["permissions"], fields["bindings"])
	return a
}

func (r reader) ladder(n *jsonform.Node) Ladder {
	fields := r.Fields(n, exampleLadder, []string{"agents", "rung", "permissions", "bindings"})
	l := Ladder{Line: r.Line(n.Offset)}
	if agents := fields["agents"]; agents != nil {
		for _, item := range r.Items(agents, maxPersons, `["claude"]`) {
			name := r.Text(item, `"claude"`)
			if _, err := (extension.Scope{Kind: extension.Agent, Owner: name}).MarshalText(); err != nil && r.Err == nil {
				r.Fail(item, `the name of an agent, like "claude"`, "%s names no agent", jsonform.Quote(name))
			}
			l.Agents = append(l.Agents, name)
		}
	}
	if name := fields["rung"]; name != nil {
		names := make([]string, 0, len(rung.Names()))
		for _, n := range rung.Names() {
			names = append(names, strconv.Quote(n))
		}
		instead := "one of " + strings.Join(names, ", ")
		var err error
		if l.Rung, err = rung.Parse(r.Text(name, instead)); err != nil && r.Err == nil {
			r.Fail(name, instead, "%v", err)
		}
	}
	l.Bindings = extension.ReadBindings(r.Reader, r.kinds, fields["permissions"], fields["bindings"])
	for _, b := range l.Bindings {
		if !slices.Contains(rung.Bindings(), b.Name) && r.Err == nil {
			r.Fail(n, "one of "+strings.Join(rung.Bindings(), ", "), "the ladder has no binding %s", jsonform.Quote(b.Name))
		}
		if b.Grant != nil && b.Name != b.Grant.Kind().Name && r.Err == nil {
			r.Fail(n, fmt.Sprintf("the kind %s", b.Name), "the ladder's binding %s is a %s", b.Name, b.Grant.Kind().Name)
		}
	}
	return l
}

// one reads one of a few words.
func one[T ~string](r reader, n *jsonform.Node, words ...T) T {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(string(word))
	}
	instead := "one of " + strings.Join(quoted, ", ")
	s := T(r.Text(n, instead))
	if r.Err == nil && !slices.Contains(words, s) {
		r.Fail(n, instead, "%s is not one of these words", jsonform.Quote(string(s)))
	}
	return s
}

func (r reader) person(n *jsonform.Node) string {
	const example = `the name that an MCP client gives itself, like "my-editor"`
	s := r.Text(n, example)
	switch {
	case r.Err != nil:
	case s == "":
		r.Fail(n, example, "the name is empty")
	case len(s) > maxPerson:
		r.Fail(n, fmt.Sprintf("at most %d bytes", maxPerson), "the name has %d bytes", len(s))
	default:
		if c, found := printable.Unclear(s); found {
			r.Fail(n, "printable text", "the name holds the character %+q", c)
		}
	}
	return s
}

// packageForm matches the name of an npm package, in which "*" may stand, but not for a scope.
var packageForm = lazyregexp.New(`^(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9*][a-z0-9._~*-]*$`)

func (r reader) packageName(n *jsonform.Node) string {
	const example = `the name of an npm package, like "zod", "lodash-*" or "@scope/*"`
	s := r.Text(n, example)
	if r.Err == nil && (len(s) > npmspec.MaxName || !packageForm.MatchString(s)) {
		r.Fail(n, example, "%s names no packages", jsonform.Quote(s))
	}
	return s
}

func (r reader) limits(n *jsonform.Node, l *Limits) {
	counts := []struct {
		name string
		most int
		to   *int
	}{
		{"extensionsPerScope", 10_000, &l.ExtensionsPerScope},
		{"buildsPerHour", 100_000, &l.BuildsPerHour},
		{"nesting", 64, &l.Nesting},
		{"failuresBeforeBreak", 10_000, &l.FailuresBeforeBreak},
	}
	sizes := []struct {
		name string
		to   *int64
	}{
		{"storedPerAuthor", &l.StoredPerAuthor},
		{"stored", &l.Stored},
		{"keptPerScope", &l.KeptPerScope},
		{"kept", &l.Kept},
		{"auditedCalls", &l.AuditedCalls},
	}
	known := []string{"breakFor"}
	for _, c := range counts {
		known = append(known, c.name)
	}
	for _, s := range sizes {
		known = append(known, s.name)
	}
	fields := r.Fields(n, exampleLimits, known)
	for _, c := range counts {
		if field := fields[c.name]; field != nil {
			*c.to = r.count(field, c.most)
		}
	}
	if field := fields["breakFor"]; field != nil {
		l.BreakFor = r.duration(field)
	}
	for _, s := range sizes {
		if field := fields[s.name]; field != nil {
			*s.to = r.size(field)
		}
	}
}

func (r reader) count(n *jsonform.Node, most int) int {
	number, ok := n.Value.(json.Number)
	count, err := strconv.Atoi(string(number))
	if (!ok || err != nil || count < 1 || count > most) && r.Err == nil {
		r.Fail(n, fmt.Sprintf("a whole number from 1 to %d", most), "this is not a number of this size")
	}
	return count
}

func (r reader) size(n *jsonform.Node) int64 {
	const example = `a size from "1MiB" to "1048576GiB", like "1GiB"`
	s := r.Text(n, example)
	size, err := printable.ParseSize(s)
	if (err != nil || size < 1<<20 || size > 1<<50) && r.Err == nil {
		r.Fail(n, example, "%s is not a size of this range", jsonform.Quote(s))
	}
	return size
}

func (r reader) duration(n *jsonform.Node) time.Duration {
	const example = `a time from "1s" to "24h", like "5m"`
	s := r.Text(n, example)
	d, err := time.ParseDuration(s)
	if (err != nil || d < time.Second || d > 24*time.Hour) && r.Err == nil {
		r.Fail(n, example, "%s is not a time of this length", jsonform.Quote(s))
	}
	return d
}
