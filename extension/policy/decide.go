package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
)

// Request is a request to activate an extension in a scope.
type Request struct {
	// Scope is the scope in which it becomes active. It is wider than Author for a promotion.
	Scope extension.Scope
	// Author is the scope of the requester: an agent or a user.
	Author extension.Scope
	// Asked is what the manifest asks for, before [extension.Manifest.Own].
	Asked []extension.Binding
	// Approved is what the active version in Scope asks for. It is nil if there is none.
	Approved []extension.Binding
	// Undeclared are the npm packages that the code imports but the manifest does not name. Known are those that the active
	// version imports.
	Undeclared, Known []string
	// NoSource is set for a component that came without source. No rule approves one: only a person does.
	NoSource bool
	// Durable are the tools whose calls go on after their caller has left, as far as the active version in the author's scope does not have them for as
	// long. No rule approves that: only a person does.
	Durable []extension.Durable
}

// Verdict is the outcome of a decision.
type Verdict string

// The verdicts.
const (
	// Approved needs no person.
	Approved Verdict = "approved"
	// Pending needs a person.
	Pending Verdict = "pending"
	// Refused is a request that nobody can approve under this policy.
	Refused Verdict = "refused"
)

// Decision is the policy's answer to a request.
type Decision struct {
	Verdict Verdict
	// Line is the deciding line of the policy, "policy.json:12", or "default".
	Line string
	// Reason says why, in one printable sentence.
	Reason string
	// Granted is the part of the request that the ceiling permits, and Cut the part it removes.
	Granted []extension.Binding
	Cut     []extension.Change
}

// Decide says whether a request needs a person. An npm package that the manifest does not declare needs one, unless the policy names
// it or the active version in the author's scope imports it. Decide compares approvals with the whole request, not with what a
// ceiling leaves of it, so a ceiling that rises later approves nothing. A component without source always needs a person, and so do tools whose calls go on after their caller has left. If the ceiling removes all of one binding, Decide refuses
// the request, because the code does not work without it.
func (p *Policy) Decide(r Request) Decision {
	d := p.decide(r)
	if d.Verdict != Refused && r.NoSource {
		return d.with(Pending, 0, "it is a component without source to read, and no rule of the policy approves one")
	}
	if d.Verdict == Approved && len(r.Durable) > 0 {
		return d.with(Pending, 0, "%s, and no rule of the policy approves that", r.Durable[0])
	}
	unnamed := p.Unnamed(r.Undeclared, r.Known)
	if d.Verdict == Approved && len(unnamed) > 0 {
		return d.with(Pending, 0, "the code imports %s, which neither the manifest's dependencies nor packages in the policy names", strings.Join(unnamed, ", "))
	}
	return d
}

// Unnamed returns the packages that need a person: those that are not known, and that Packages does not name.
func (p *Policy) Unnamed(packages, known []string) []string {
	var unnamed []string
	for _, name := range packages {
		if !slices.Contains(known, name) && !slices.ContainsFunc(p.Packages, func(pattern string) bool {
			fits, _ := path.Match(pattern, name) // Parse takes only patterns that are valid
			return fits
		}) {
			unnamed = append(unnamed, name)
		}
	}
	return unnamed
}

// decide looks only at the bindings.
func (p *Policy) decide(r Request) Decision {
	d := Decision{}
	d.Granted, d.Cut = p.Limit(r.Asked)
	var gone []string
	for _, c := range d.Cut {
		if c.What == extension.Removed {
			gone = append(gone, c.Binding)
		}
	}
	if len(gone) > 0 {
		return d.with(Refused, p.Ceiling.Line, "the policy's ceiling forbids %s; leave this out of the manifest, or ask the operator for a higher ceiling", bindings(gone))
	}
	asked := slices.DeleteFunc(slices.Clone(r.Asked), extension.Binding.Harmless)
	if p.Updates == Same && r.Approved != nil && r.Scope == r.Author && extension.Covers(r.Approved, asked) {
		return d.with(Approved, p.updatesLine, "it asks for no more than the active version")
	}
	for _, a := range p.Approve {
		if a.holdsIn(r.Scope, r.Author) && extension.Covers(a.Bindings, asked) {
			return d.with(Approved, a.Line, "all that it asks for is pre-approved in %s", r.Scope)
		}
	}
	if len(asked) == 0 {
		return d.with(Pending, 0, "nothing is pre-approved in %s", r.Scope)
	}
	var names []string
	for _, b := range asked {
		names = append(names, b.Name)
	}
	return d.with(Pending, 0, "nothing in the policy approves %s in %s", bindings(names), r.Scope)
}

func (d Decision) with(v Verdict, line int, reason string, args ...any) Decision {
	d.Verdict, d.Line, d.Reason = v, "default", fmt.Sprintf(reason, args...)
	if line > 0 {
		d.Line = fmt.Sprintf("%s:%d", File, line)
	}
	return d
}

func bindings(names []string) string {
	if len(names) == 1 {
		return "the binding " + names[0]
	}
	return "the bindings " + strings.Join(names, ", ")
}

// holdsIn reports whether the approval covers extensions that an author puts into a scope.
func (a Approval) holdsIn(scope, author extension.Scope) bool {
	return slices.ContainsFunc(a.Scopes, func(s Scopes) bool {
		if s == Own {
			return scope == author && (scope.Kind == extension.Agent || scope.Kind == extension.User)
		}
		return string(s) == string(scope.Kind)
	})
}
