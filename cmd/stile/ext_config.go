package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

type extConfig struct {
	Name   string   `arg:"" complete:"extension" help:"Name of the extension."`
	Action string   `arg:"" optional:"" help:"list, get, set or unset. Default: list."`
	Vars   []string `arg:"" optional:"" name:"var" help:"For set, NAME=VALUE; for get and unset, NAME."`
	scopeFlag
	asJSON
}

// Help implements kong.HelpProvider.
func (*extConfig) Help() string {
	return `A manifest declares vars: plain values with a schema and defaults, which the code reads as env.vars. This command sets them for one scope, and the next call reads them. A text is written as it is, a number, true, false or a list as JSON. A value that the schema does not allow is refused. If a new version declares other vars, a value that no longer fits stays stored, the code reads the default instead, and the list says so.

Vars are not secret: recordings, the audit log and reviews show them. Use stile secret for passwords and tokens.

Examples:

    stile ext config issues
    stile ext config issues set team=core limit=20
    stile ext config issues set 'labels=["bug", "urgent"]' --scope agent:claude
    stile ext config issues get team
    stile ext config issues unset team`
}

// Run implements the command.
func (c *extConfig) Run(ctx context.Context, s *streams) error {
	switch n := len(c.Vars); c.Action {
	case "", "list":
		if n > 0 {
			return usagef("list takes no var: get prints one")
		}
	case "get":
		if n != 1 {
			return usagef("get takes the name of one var")
		}
	case "set", "unset":
		if n == 0 {
			return usagef("%s takes vars: stile ext config %s %[1]s %[3]s", c.Action, line(c.Name, 64), map[string]string{"set": "NAME=VALUE", "unset": "NAME"}[c.Action])
		}
	default:
		swapped := ""
		if slices.Contains([]string{"list", "get", "set", "unset"}, c.Name) {
			swapped = fmt.Sprintf("; the name comes first: stile ext config %s %s", line(c.Action, 64), c.Name)
		}
		return usagef("%s is not list, get, set or unset%s", line(c.Action, 64), swapped)
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		scope, err := c.scope(e.settings)
		if err != nil {
			return err
		}
		configured, err := e.Configuration(ctx, scope, c.Name)
		if err != nil {
			return err
		}
		switch c.Action {
		case "get":
			return c.get(s, configured)
		case "set", "unset":
			set, err := c.changes(configured)
			if err != nil {
				return err
			}
			by, err := e.author()
			if err != nil {
				return err
			}
			if configured, err = e.Configure(ctx, scope, c.Name, set, lifecycle.Decision{By: by, Via: s.via()}); err != nil {
				return varUsage(err)
			}
		}
		if c.JSON {
			return printJSON(s.out, map[string]any{"extension": c.Name, "scope": scope.String(), "vars": varsOf(configured.Vars)})
		}
		if len(configured.Vars) == 0 {
			s.say("stile: %s declares no vars", line(c.Name, 64))
			return nil
		}
		_, err = io.WriteString(s.out, varTable("", configured.Vars))
		return err
	})
}

// varUsage makes a value that cannot be set the mistake of the command line.
func varUsage(err error) error {
	if v, ok := err.(*extension.VarError); ok { //nolint:errorlint // it is what Configure returns
		return usagef("%w", v)
	}
	return err
}

// changes are what to set.
func (c *extConfig) changes(configured lifecycle.Configured) (map[string]json.RawMessage, error) {
	m := &extension.Manifest{}
	for _, v := range configured.Vars {
		if v.Var.Type != "" {
			m.Vars = append(m.Vars, v.Var)
		}
	}
	set := map[string]json.RawMessage{}
	for _, given := range c.Vars {
		name, value := given, json.RawMessage(nil)
		if c.Action == "set" {
			var err error
			if name, value, err = extension.ParseVar(m, given); err != nil {
				return nil, usagef("%w", err)
			}
		}
		if _, twice := set[name]; twice {
			return nil, usagef("%s is here twice", line(name, 64))
		}
		set[name] = value
	}
	return set, nil
}

// get prints one value.
func (c *extConfig) get(s *streams, configured lifecycle.Configured) error {
	for _, v := range configured.Vars {
		if v.Var.Name != c.Vars[0] {
			continue
		}
		if c.JSON {
			return printJSON(s.out, varOf(v))
		}
		if v.Value == nil {
			return &lifecycle.NotFoundError{What: fmt.Sprintf("value of %s, and it has no default", v.Var.Name)}
		}
		_, err := fmt.Fprintln(s.out, varText(v.Value))
		return err
	}
	_, err := (&extension.Manifest{}).CheckVar(c.Vars[0], nil)
	if len(configured.Vars) > 0 {
		m := &extension.Manifest{}
		for _, v := range configured.Vars {
			m.Vars = append(m.Vars, v.Var)
		}
		_, err = m.CheckVar(c.Vars[0], nil)
	}
	return usagef("%w", err)
}

// varText is a value for a person: a text as it is.
func varText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return printable.Text(text)
	}
	return string(escape(value))
}

// varTable lists vars with their values.
func varTable(indent string, vars []extension.VarState) string {
	rows := [][]string{{"VAR", "VALUE", "FROM", "KIND", "DESCRIPTION"}}
	for _, v := range vars {
		value, from := "", "nothing"
		if v.Value != nil {
			value, from = line(string(escape(v.Value)), 200), "default"
		}
		switch {
		case v.Unfit != "":
			from += "; the set value " + line(string(escape(v.Set)), 60) + " " + line(v.Unfit, 200)
		case v.Set != nil:
			from = "set"
		}
		rows = append(rows, []string{v.Var.Name, value, from, line(v.Var.Says(), 120), line(v.Var.Description, 200)})
	}
	return table(indent, rows)
}

// varJSON is a var with its value.
type varJSON struct {
	Name   string          `json:"name"`
	Schema *extension.Var  `json:"schema,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Set    json.RawMessage `json:"set,omitempty"`
	Unfit  string          `json:"unfit,omitempty"`
}

func varOf(v extension.VarState) varJSON {
	j := varJSON{Name: v.Var.Name, Value: v.Value, Set: v.Set, Unfit: v.Unfit}
	if v.Var.Type != "" {
		j.Schema = &v.Var
	}
	return j
}

func varsOf(vars []extension.VarState) []varJSON {
	list := make([]varJSON, len(vars))
	for i, v := range vars {
		list[i] = varOf(v)
	}
	return list
}

// tellUnfit tells a person which set values an active version does not read.
func (e *extensions) tellUnfit(ctx context.Context, s *streams, r lifecycle.Release) error {
	if r.State != lifecycle.Active {
		return nil
	}
	configured, err := e.Configuration(ctx, r.Scope, r.Name)
	if err != nil {
		return err
	}
	for _, v := range configured.Unfit() {
		instead := "the code reads the default instead"
		if v.Value == nil {
			instead = "the code reads nothing"
		}
		s.say("stile: %s: the set value of %s %s; %s: stile ext config %[1]s", r.Name, v.Var.Name, strings.TrimSuffix(line(v.Unfit, 200), "."), instead)
	}
	return nil
}
