// Package rung names the rungs of the ladder, for package ladder and for the operator's policy.
package rung

import (
	"fmt"
	"strconv"
	"strings"
)

// Rung is a level of the ladder. Each adds to the ones below.
type Rung uint8

// The rungs, from the bottom.
const (
	// Workspace has tools for the files of a workspace.
	Workspace Rung = iota
	// Isolate runs code that calls tools, in a fresh instance without network.
	Isolate
	// NPM lets that code import npm packages.
	NPM
	// Browser has tools for a headless browser.
	Browser
	// Sandbox has tools for a container with real toolchains.
	Sandbox
)

var rungs = [...]string{"workspace", "isolate", "npm", "browser", "sandbox"}

// Names are the names of the rungs, from the bottom.
func Names() []string { return rungs[:] }

// String is the rung's name.
func (r Rung) String() string {
	if int(r) >= len(rungs) {
		return fmt.Sprintf("rung(%d)", uint8(r))
	}
	return rungs[r]
}

// Parse reads a rung: its name, or its number from 0.
func Parse(text string) (Rung, error) {
	for i, name := range rungs {
		if text == name || text == strconv.Itoa(i) {
			return Rung(i), nil
		}
	}
	return 0, fmt.Errorf("there is no rung %q; write one of %s, or its number from 0", text, strings.Join(rungs[:], ", "))
}

// Bindings are the names of the capabilities behind the rungs. Each is that of its kind.
func Bindings() []string { return []string{"workspace", "browser", "sandbox"} }
