package extension

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// SpecError reports a wrong binding on a command line.
type SpecError struct {
	// Spec is the text that was given.
	Spec string
	// Message says what is wrong.
	Message string
	// Instead is what to write.
	Instead string
}

// Error implements error.
func (e *SpecError) Error() string {
	return fmt.Sprintf("binding %s: %s; write %s", jsonform.Quote(e.Spec), e.Message, e.Instead)
}

const (
	maxSpec = 16 << 10 // bytes

	exampleSpec = "NAME=KIND, like clock=clock or notes=workspace:my-notes,rw"
)

// ParseSpecs reads the bindings of a command line with [ParseSpec], in byte order of their names. Several http specs with
// one name are the rules of one binding; any other name occurs once. NAME.INNER=SPEC is the binding INNER of the tools that the binding NAME
// gives. An error is a *[SpecError].
func ParseSpecs(kinds capability.Set, specs []string) ([]Binding, error) {
	return parseSpecs(kinds, specs, "")
}

// parseSpecs reads the bindings of the tools of a binding, or of the command line itself, where within is "".
func parseSpecs(kinds capability.Set, specs []string, within string) ([]Binding, error) {
	var all []Binding
	inner := map[string][]string{}
	for _, spec := range specs {
		name, _, _ := strings.Cut(spec, "=")
		if outer, _, ok := strings.Cut(name, "."); ok && bindingNameProblem(outer) == "" {
			inner[outer] = append(inner[outer], spec[len(outer)+1:])
			continue
		}
		b, err := ParseSpec(kinds, spec)
		if wrong, ok := errors.AsType[*SpecError](err); ok {
			wrong.Spec = within + wrong.Spec
		}
		if err != nil {
			return nil, err
		}
		i := find(all, b.Name)
		if i < 0 {
			all = append(all, b)
			continue
		}
		var both capability.Grant
		if g, ok := all[i].Grant.(capability.Merger); ok {
			both = g.Merge(b.Grant)
		}
		if both == nil {
			return nil, &SpecError{within + spec, fmt.Sprintf("the name %s is taken by another binding", jsonform.Quote(b.Name)), "another name"}
		}
		all[i].Grant = both
	}
	sortBindings(all)
	for i, b := range all {
		g, ok := b.Grant.(capability.Nester)
		if !ok {
			continue
		}
		grants := map[string]capability.Grant{}
		own, err := parseSpecs(kinds, inner[b.Name], within+b.Name+".")
		if err != nil {
			return nil, err
		}
		for _, o := range own {
			grants[o.Name] = o.Grant
		}
		all[i].Grant = g.Nest(within+b.Name, grants)
		delete(inner, b.Name)
	}
	for _, outer := range slices.Sorted(maps.Keys(inner)) {
		return nil, &SpecError{
			within + outer + "." + inner[outer][0], fmt.Sprintf("no binding %s gives tools that could have it", jsonform.Quote(within+outer)),
			within + outer + "=tools:FILE beside it",
		}
	}
	return all, nil
}

// ParseSpec reads one binding of a command line, NAME=KIND[:ARGUMENT][,OPTION]...:
//
//	notes=workspace:mine,rw
//	clock=clock
//
// [capability.Kind.ParseSpec] of the kind reads what follows KIND. `stile run --help` lists the forms of all kinds.
// A comma in a URL is written %2C; the path of a directory has none. An error is a *[SpecError].
func ParseSpec(kinds capability.Set, spec string) (Binding, error) {
	fail := func(instead, format string, args ...any) (Binding, error) {
		return Binding{}, &SpecError{spec, fmt.Sprintf(format, args...), instead}
	}
	name, rest, ok := strings.Cut(spec, "=")
	switch {
	case len(spec) > maxSpec:
		return fail(fmt.Sprintf("at most %d bytes", maxSpec), "it has %d bytes", len(spec))
	case !ok:
		return fail(exampleSpec, `there is no "="`)
	}
	if problem := bindingNameProblem(name); problem != "" {
		return fail(`a lower-case name, like "notes"`, "the name %s %s", jsonform.Quote(name), problem)
	}
	if text := reservedBinding(name); text != "" {
		return fail(freeBinding, "%s", text)
	}
	grant, err := kinds.ParseSpec(name, rest)
	if wrong, ok := errors.AsType[*capability.MistakeError](err); ok {
		return Binding{}, &SpecError{spec, wrong.Text, wrong.Fix}
	}
	return Binding{Name: name, Grant: grant}, err
}
