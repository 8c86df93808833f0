// Package policy is what an operator decides beforehand about extensions: how far their authority can go at most, what needs
// no person to approve it, who counts as a person, and how much there may be of everything. It comes from a JSON file:
//
//	{
//	  "ceiling": {
//	    "permissions": { "workspace": "read-write", "kv": true },
//	    "bindings": { "github": { "http": [{ "host": "api.github.com", "methods": ["*"], "credential": "github-token" }] } }
//	  },
//	  "approve": [
//	    { "permissions": { "workspace": "read" } },
//	    { "scopes": ["own", "shared"], "bindings": { "status": { "http": [{ "host": "status.example.com" }] } } }
//	  ],
//	  "packages": ["zod", "@types/*"],
//	  "updates": "same",
//	  "persons": ["my-editor"],
//	  "limits": { "extensionsPerScope": 100, "buildsPerHour": 60, "nesting": 8, "failuresBeforeBreak": 5, "breakFor": "5m" },
//	  "hosts": { "api.example.test": "127.0.0.1" }
//	}
//
// Every field may be left out; the fields of [Policy] say what that means. Bindings are written as in a manifest, short or
// long, and their names are for the reader only. Clock, random, console and blob reach nothing beyond a call: no ceiling cuts
// them and no entry of approve has to name them.
//
// The file belongs to the operator. Nothing that a model or a guest can write may be read as one.
package policy

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stilehost/stile/extension"
)

// File is the name of the file in the folder where Stile keeps its state.
const File = "policy.json"

// Policy is what an operator decides. Nobody changes it once it is read, so goroutines may share it.
type Policy struct {
	// Ceiling is what no extension goes beyond, whoever approves it. Default nil: there is none.
	Ceiling *Ceiling
	// Approve says what needs no person. Each entry stands alone: what two of them allow together, such as to read files and
	// to send requests, needs an entry with both. Default one entry that approves what asks for nothing, in its own scope.
	Approve []Approval
	// Packages are the npm packages that code may import without a person though its manifest's dependencies do not name them: a "*" stands
	// for any characters but "/". A name that nobody wrote down on purpose is where squatters wait. Default none.
	Packages []string
	// Updates says whether code may change without a person. Default Ask: an approval is bound to digests, and a person
	// who has read the code of one version has not read that of the next.
	Updates Updates
	// Persons are the names of MCP clients whose answer to an elicitation is a person's. A client names itself, so this
	// trusts whatever can reach the server. Default none.
	Persons []string
	// Limits bound what extensions take.
	Limits Limits
	// Hosts are addresses of hosts, in place of what a resolver says. Rules that name such a host exactly may dial them, public or
	// not. Default none.
	Hosts map[string][]netip.Addr

	updatesLine int
}

// Ceiling is the most that an extension may do.
type Ceiling struct {
	Bindings []extension.Binding
	// Line is where it stands in the file, from 1.
	Line int
}

// Approval is authority that is approved beforehand.
type Approval struct {
	// Scopes are where it holds. Default Own.
	Scopes []Scopes
	// Bindings are all that the extension may ask for.
	Bindings []extension.Binding
	// Line is where it stands in the file, from 1; 0 for the default.
	Line int
}

// Scopes are some of the scopes that there are.
type Scopes string

// The scopes of an approval.
const (
	// Own is the scope of the agent or the user who writes the extension.
	Own Scopes = "own"
	// The scopes of a kind, whoever writes into them.
	Agents    Scopes = "agent"
	Users     Scopes = "user"
	Everybody Scopes = "shared"
)

// Updates says what happens with a version of an extension that is active already.
type Updates string

// What happens with updates.
const (
	// Ask treats an update like a new extension.
	Ask Updates = "ask"
	// Same approves an update that asks for no more than the active version does, in the scope of its author: others may write
	// into a wider one, and would have their code run with what another's was approved for.
	Same Updates = "same"
)

// Limits bound what extensions take.
type Limits struct {
	// ExtensionsPerScope is how many there are in one scope. Default 100; at most 10,000.
	ExtensionsPerScope int
	// BuildsPerHour is how many are built in an hour for one scope; a model that is asked and gives nothing to build counts as one. Default 60; at most 100,000.
	BuildsPerHour int
	// Nesting is how deep tools call tools. Default 8; at most 64.
	Nesting int
	// FailuresBeforeBreak is how many calls in a row fail, for one caller in one process, before the tool is not called for it for BreakFor.
	// Default 5; at most 10,000.
	FailuresBeforeBreak int
	// BreakFor is from a second to a day. Default 5 minutes.
	BreakFor time.Duration
}

// Default is the policy where there is no file.
func Default() *Policy {
	return &Policy{
		Approve: []Approval{{Scopes: []Scopes{Own}}},
		Updates: Ask,
		Limits:  Limits{ExtensionsPerScope: 100, BuildsPerHour: 60, Nesting: 8, FailuresBeforeBreak: 5, BreakFor: 5 * time.Minute},
	}
}

// Limit cuts what an extension asks for down to the ceiling, as [extension.Limit] does.
func (p *Policy) Limit(asked []extension.Binding) (granted []extension.Binding, cut []extension.Change) {
	if p.Ceiling == nil {
		return extension.Merge(asked), nil
	}
	return extension.Limit(p.Ceiling.Bindings, asked)
}

// Person reports whether an elicitation that an MCP client of this name answers was answered by a person.
func (p *Policy) Person(client string) bool { return slices.Contains(p.Persons, client) }
