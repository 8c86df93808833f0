package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/formfield"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Var is one value of an extension's configuration, as its manifest declares it: plain data that a person sets, and no secret.
type Var = formfield.Field

// Limits of vars.
const (
	MaxVars = 64
	// MaxVarBytes is how many bytes of JSON the values that a person sets have together, and the defaults of a manifest.
	MaxVarBytes = 16 << 10
)

const exampleVars = `{"team": {"type": "string", "description": "whose issues", "default": "core"}}`

// vars reads what a person can configure.
func (r *reader) vars(n *jsonform.Node) []Var {
	members := r.Members(n, exampleVars)
	if len(members) > MaxVars {
		r.Fail(n, fmt.Sprintf("at most %d", MaxVars), "there are %d vars", len(members))
		return nil
	}
	var all []Var
	size := 0
	for _, m := range members {
		all = append(all, r.readVar(m, &size))
		r.Next()
	}
	slices.SortFunc(all, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// readVar reads one var, and adds the bytes of its default to size.
func (r *reader) readVar(m jsonform.Member, size *int) Var {
	if problem := VarNameProblem(m.Key); problem != "" {
		r.FailAt(m.Offset, m.Value.Path(), `a lower-case name, like "team"`, "%s %s", jsonform.Quote(m.Key), problem)
		r.Next()
	}
	v := formfield.Read(r.Reader, m.Key, m.Value)
	if (v.Type == formfield.String || v.Type == formfield.Array) && formfield.Secret(m.Key) {
		r.FailAt(m.Offset, m.Value.Path(), `a credential of an http binding, which the code never sees`, "%s sounds like a secret, and vars are not secret", jsonform.Quote(m.Key))
	}
	if *size += len(v.Default); *size > MaxVarBytes {
		r.Fail(m.Value, fmt.Sprintf("defaults of at most %d bytes", MaxVarBytes), "the defaults are too large")
	}
	return v
}

// VarNameProblem says why a var cannot have a name, or returns nothing.
func VarNameProblem(name string) string { return bindingNameProblem(name) }

// Var returns the var of a name.
func (m *Manifest) Var(name string) (*Var, bool) {
	at := slices.IndexFunc(m.Vars, func(v Var) bool { return v.Name == name })
	if at < 0 {
		return nil, false
	}
	return &m.Vars[at], true
}

// VarError reports a value that a var cannot have.
type VarError struct {
	Name, Problem string
	// Known are the names of the manifest's vars, if it has none of this name.
	Known []string
}

// Error implements error.
func (e *VarError) Error() string {
	if e.Known != nil {
		text := fmt.Sprintf("there is no var %s", jsonform.Quote(e.Name))
		if near := jsonform.Nearest(e.Name, e.Known); near != "" {
			text += "; did you mean " + near + "?"
		} else if len(e.Known) > 0 {
			text += "; there are " + printable.Short(strings.Join(e.Known, ", "), 500)
		} else {
			text += "; the manifest declares none"
		}
		return text
	}
	return fmt.Sprintf("the value of %s %s", e.Name, e.Problem)
}

// CheckVar returns a value for a var in its shortest form. An error is a *[VarError].
func (m *Manifest) CheckVar(name string, value json.RawMessage) (json.RawMessage, error) {
	v, ok := m.Var(name)
	if !ok {
		known := make([]string, len(m.Vars))
		for i, v := range m.Vars {
			known[i] = v.Name
		}
		return nil, &VarError{Name: name, Known: known}
	}
	value, err := v.Check(value)
	if err != nil {
		return nil, &VarError{Name: name, Problem: err.Error()}
	}
	return value, nil
}

// VarState is a var with its value.
type VarState struct {
	// Var is the zero value, with a name, if the manifest does not have it.
	Var Var
	// Value is what the code reads: what a person set, or else the default. It is nil if there is none.
	Value json.RawMessage
	// Set is what a person set, nil if nothing. Unfit says why it is not the value.
	Set   json.RawMessage
	Unfit string
}

// Configure returns the vars with what a person set, in byte order. A set value that does not fit is left out: the default
// takes its place.
func (m *Manifest) Configure(set map[string]json.RawMessage) []VarState {
	var all []VarState
	for _, v := range m.Vars {
		s := VarState{Var: v, Value: v.Default, Set: set[v.Name]}
		if s.Set != nil {
			if value, err := v.Check(s.Set); err != nil {
				s.Unfit = err.Error()
			} else {
				s.Value = value
			}
		}
		all = append(all, s)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, ok := m.Var(name); !ok {
			all = append(all, VarState{Var: Var{Name: name}, Set: set[name], Unfit: "is not used: the manifest has no var of this name"})
		}
	}
	return all
}

// VarsText is what the code reads of vars: a JSON object. It is nil if there are none.
func VarsText(states []VarState) []byte {
	values := map[string]json.RawMessage{}
	for _, s := range states {
		if s.Value != nil {
			values[s.Var.Name] = s.Value
		}
	}
	if len(values) == 0 {
		return nil
	}
	return capability.JSON(values)
}

// VarTypes are the fields of env.vars in TypeScript. A var without a default can be missing.
func VarTypes(vars []Var) []string {
	lines := make([]string, 0, len(vars))
	for _, v := range vars {
		optional := ""
		if v.Default == nil {
			optional = "?"
		}
		about := ""
		if v.Description != "" {
			about = "/** " + strings.ReplaceAll(printable.Line(v.Description), "*/", "*\u200b/") + " */ "
		}
		lines = append(lines, fmt.Sprintf("%sreadonly %s%s: %s;", about, v.Name, optional, v.TypeScript()))
	}
	return lines
}

// ParseVar reads NAME=VALUE of a command line. With a manifest, the value is checked: a text is written as it is, and anything else as
// JSON. Without one, a value that is JSON is that, and any other is a text.
func ParseVar(m *Manifest, given string) (name string, value json.RawMessage, err error) {
	name, text, ok := strings.Cut(given, "=")
	if !ok {
		return "", nil, &VarError{Name: jsonform.Quote(given), Problem: `is missing: the form is NAME=VALUE, like team=core`}
	}
	if problem := VarNameProblem(name); problem != "" {
		return "", nil, &VarError{Name: jsonform.Quote(name), Problem: "cannot be set: the name " + problem}
	}
	if m == nil {
		if v := json.RawMessage(text); len(text) <= formfield.MaxValue && json.Valid(v) {
			return name, v, nil
		}
		f := Var{Name: name, Type: formfield.String}
		value, err = f.Check(capability.JSON(text))
	} else {
		value, err = m.VarOf(name, text)
		return name, value, err
	}
	if err != nil {
		err = &VarError{Name: name, Problem: err.Error()}
	}
	return name, value, err
}

// VarOf reads a value as a person writes it: a text as it is, and anything else as JSON. An error is a *[VarError].
func (m *Manifest) VarOf(name, text string) (json.RawMessage, error) {
	v, ok := m.Var(name)
	if ok && v.Type == formfield.String {
		return m.CheckVar(name, capability.JSON(text))
	}
	value, err := m.CheckVar(name, json.RawMessage(text))
	if wrong, is := errors.AsType[*VarError](err); ok && is && !json.Valid([]byte(text)) {
		wrong.Problem += "; write " + exampleOf(v, text)
	}
	return value, err
}

// exampleOf returns the argument that sets a var, quoted for a shell. A list has the text that a person wrote, if that is a word.
func exampleOf(v *Var, text string) string {
	value := map[string]string{formfield.Number: "1.5", formfield.Integer: "3", formfield.Boolean: "true"}[v.Type]
	if v.Type == formfield.Array {
		if !shellWord.MatchString(text) {
			text = "a"
		}
		if len(v.Choices) > 0 && !slices.Contains(v.Choices, text) {
			text = v.Choices[0]
		}
		value = string(capability.JSON([]string{text}))
	}
	return "'" + strings.ReplaceAll(v.Name+"="+value, "'", `'\''`) + "'"
}

var shellWord = lazyregexp.New(`^[\w.-]{1,40}$`)

// TooManyVars checks the size of what a person set.
func TooManyVars(set map[string]json.RawMessage) error {
	size := 0
	for name, value := range set {
		size += len(name) + len(value)
	}
	switch {
	case len(set) > MaxVars:
		return fmt.Errorf("%d vars are set; %d are allowed", len(set), MaxVars)
	case size > MaxVarBytes:
		return fmt.Errorf("the vars have %d bytes; %d are allowed", size, MaxVarBytes)
	default:
		return nil
	}
}

var errVars = errors.New("the manifest declares no vars")

// testVars reads the vars of a test.
func (r *reader) testVars(n *jsonform.Node, m *Manifest) map[string]json.RawMessage {
	vars := map[string]json.RawMessage{}
	if r.gaps.Vars {
		return nil // which values they can have is not known
	}
	if len(m.Vars) == 0 {
		r.Fail(n, `"vars" beside tests`, "%v", errVars)
		return nil
	}
	for _, member := range r.Members(n, `{"team": "core"}`) {
		value, err := m.CheckVar(member.Key, capability.JSON(member.Value.Plain()))
		if err != nil {
			r.Fail(member.Value, "a value that fits the manifest's vars", "%v", err)
		}
		vars[member.Key] = value
		r.Next()
	}
	return vars
}
