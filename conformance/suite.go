// Package conformance tests hosts of stile:extension, in any language, through a protocol of JSON lines. The cases are data below cases,
// one folder for each section. Run starts a host, makes each case's calls, and compares what the host says, and what arrived at servers and
// in folders of the runner, with what the case expects.
package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/conformance/protocol"
)

//go:embed cases expected
var files embed.FS

// Sections are the parts of the suite, in the order of reports.
var Sections = []string{"denial", "values", "handles", "lifecycle", "limits", "http", "workspace", "browser", "isolation", "determinism"}

// Case is one test of a host.
type Case struct {
	Section string `json:"-"`
	// Name is unique in the suite, with the section before it: "denial/redirect-to-other-port".
	Name string `json:"name"`
	// Why says what a host that fails gets wrong.
	Why string `json:"why"`
	// Guest is the file of an extension in cases/guests. Wat is a guest in WebAssembly text instead.
	Guest string `json:"guest,omitempty"`
	Wat   *Wat   `json:"wat,omitempty"`

	// Env and Names are those of every call that has none of its own. A directory is relative to the case's folder of files.
	Env   map[string]protocol.Binding `json:"env,omitempty"`
	Names map[string][][]string       `json:"names,omitempty"`
	// Files are made before the calls. After says what files hold afterwards; null means that there is none.
	Files map[string]File    `json:"files,omitempty"`
	After map[string]*string `json:"after,omitempty"`
	// Parallel makes the calls at the same time. Repeat makes all of them so many times, each with the same expectations.
	Parallel bool   `json:"parallel,omitempty"`
	Repeat   int    `json:"repeat,omitempty"`
	Calls    []Call `json:"calls"`
	// Arrived are the requests that each server received, as "METHOD /path". Servers that are not named receive nothing. Within bounds them
	// where their number is not fixed.
	Arrived map[string][]string `json:"arrived,omitempty"`
	// Same compares the outputs, outcomes and operations of all repetitions with each other.
	Same bool `json:"same,omitempty"`
}

// File is a file of a case's folder: its text, or a link.
type File struct {
	Text *string
	Link string
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *File) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &f.Text) == nil && f.Text != nil {
		return nil
	}
	var link struct {
		Link string `json:"link"`
	}
	if err := json.Unmarshal(data, &link); err != nil || link.Link == "" {
		return errors.New(`a file is a text or {"link": TARGET}`)
	}
	f.Link = link.Link
	return nil
}

// Call is one call of a case.
type Call struct {
	Tool   string                      `json:"tool"`
	Input  json.RawMessage             `json:"input,omitempty"`
	Env    map[string]protocol.Binding `json:"env,omitempty"`
	Limits protocol.Limits             `json:"limits,omitzero"`
	Expect Expect                      `json:"expect"`
}

// Expect is what a call must do. Zero fields say nothing, except that Outcome defaults to ok.
type Expect struct {
	// Outcome is one outcome, or several with "|" between them.
	Outcome string `json:"outcome,omitempty"`
	// Output is the JSON result. OneOf are several that are right.
	Output json.RawMessage   `json:"output,omitempty"`
	OneOf  []json.RawMessage `json:"oneOf,omitempty"`
	// Limit, Binding and Operation are those of a limit or a denial. Message is a part of the message.
	Limit     string `json:"limit,omitempty"`
	Binding   string `json:"binding,omitempty"`
	Operation string `json:"operation,omitempty"`
	Message   string `json:"message,omitempty"`
	// Operations are those that the host reports: "BINDING resource.method" or "BINDING resource.method error".
	Operations []string `json:"operations,omitempty"`
	// Within is the most milliseconds that the call may take, generously.
	Within int64 `json:"within,omitempty"`
}

// Wat is a guest in WebAssembly text with one tool "t".
type Wat struct {
	// Imports are the functions it may call, as "interface function": "kv get", "kv [method]bucket.get", "kv [resource-drop]bucket". Each is
	// the function $get, $bucket.get, $drop-bucket.
	Imports []string `json:"imports,omitempty"`
	// Raw are further import fields. WIT declares the interface, named Adds, that they import.
	Raw  string `json:"raw,omitempty"`
	WIT  string `json:"wit,omitempty"`
	Adds string `json:"adds,omitempty"`
	// Call is the body of the tool, with $env and the locals $h, $i and $j. It leaves the address of the result: (call $ok AT LENGTH).
	Call string `json:"call,omitempty"`
	// Describe is the body of describe, if not the usual one. Data is at 2048. More are further fields.
	Describe string `json:"describe,omitempty"`
	Data     string `json:"data,omitempty"`
	More     string `json:"more,omitempty"`
}

// CheckSection returns an error if there is no such section. "" stands for all.
func CheckSection(name string) error {
	if name != "" && !slices.Contains(Sections, name) {
		return fmt.Errorf("there is no section %q; there are %s", name, strings.Join(Sections, ", "))
	}
	return nil
}

// Load returns the cases of a section, or of all if it is "". ports are the servers' ports, by name.
func Load(section string, ports map[string]string) ([]*Case, error) {
	if err := CheckSection(section); err != nil {
		return nil, err
	}
	var all []*Case
	seen := map[string]bool{}
	for _, name := range Sections {
		if section != "" && section != name {
			continue
		}
		found, err := fs.Glob(files, path.Join("cases", name, "*.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			cases, err := load(file, ports)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, c := range cases {
				c.Section, c.Name = name, name+"/"+c.Name
				if c.Guest != "" {
					c.Guest = path.Join("cases", "guests", c.Guest)
				}
				if seen[c.Name] {
					return nil, fmt.Errorf("%s: two cases have the name %s", file, c.Name)
				}
				seen[c.Name] = true
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// load reads the cases of a file. "$A" with its quotes is the port of server A as a number, and $A inside a text its digits.
func load(file string, ports map[string]string) ([]*Case, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text := string(data)
	for name, port := range ports {
		text = strings.ReplaceAll(strings.ReplaceAll(text, `"$`+name+`"`, port), `$`+name+`$`, port)
	}
	var f struct {
		Guest string                      `json:"guest"`
		Env   map[string]protocol.Binding `json:"env"`
		Names map[string][][]string       `json:"names"`
		Cases []*Case                     `json:"cases"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	for _, c := range f.Cases {
		if c.Guest == "" && c.Wat == nil {
			c.Guest = f.Guest
		}
		if c.Env == nil {
			c.Env = f.Env
		}
		if c.Names == nil {
			c.Names = f.Names
		}
		c.Repeat = max(c.Repeat, 1)
		if c.Name == "" || c.Why == "" || len(c.Calls) == 0 || (c.Guest == "") == (c.Wat == nil) {
			return nil, fmt.Errorf("case %q needs a name, a why, calls and one guest", c.Name)
		}
	}
	return f.Cases, nil
}

// kinds are the kinds of capability that a case needs.
func (c *Case) kinds() []string {
	var all []string
	add := func(env map[string]protocol.Binding) {
		for _, b := range env {
			if !slices.Contains(all, b.Kind) {
				all = append(all, b.Kind)
			}
		}
	}
	add(c.Env)
	for _, call := range c.Calls {
		add(call.Env)
	}
	slices.Sort(all)
	return all
}

// Expected returns the cases that a host of this name is expected to fail, with reasons.
func Expected(host string) (map[string]string, error) {
	data, err := files.ReadFile(path.Join("expected", path.Base(host)+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all map[string]string
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("expected failures of %s: %w", host, err)
	}
	for name, reason := range all {
		if reason == "" {
			return nil, fmt.Errorf("expected failures of %s: %s has no reason", host, name)
		}
	}
	return all, nil
}
