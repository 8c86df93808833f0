// Package policy reads and applies what an operator decides in advance about extensions: the most authority they can have,
// what needs no approval by a person, who counts as a person, and limits. A policy is a JSON file:
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
//	  "limits": { "extensionsPerScope": 100, "buildsPerHour": 60, "nesting": 8, "failuresBeforeBreak": 5, "breakFor": "5m",
//	    "storedPerAuthor": "1GiB", "stored": "8GiB", "keptPerScope": "8GiB", "kept": "32GiB", "auditedCalls": "1GiB" },
//	  "ladder": [
//	    { "agents": ["claude"], "rung": "browser", "permissions": { "workspace": "read-write", "browser": ["example.com"] } },
//	    { "rung": "workspace", "permissions": { "workspace": "read" } }
//	  ],
//	  "hosts": { "api.example.test": "127.0.0.1" }
//	}
//
// Every field is optional; the fields of [Policy] document the defaults. Bindings are written as in a manifest, short or
// long. Their names are for the reader only. Clock, random, console and blob reach nothing beyond a call: no ceiling cuts
// them and no entry of approve has to name them.
//
// The file belongs to the operator. Never read a policy from a place that a model or a guest can write to.
package policy

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/rung"
)

// File is the name of the file in the folder where Stile keeps its state.
const File = "policy.json"

// Policy is what an operator decides. It is immutable once read, so goroutines may share it.
type Policy struct {
	// Ceiling is the most that any extension may do, even with approval. Default nil: no ceiling.
	Ceiling *Ceiling
	// Approve says what needs no person. Each entry stands alone: what two of them allow together, such as to read files and
	// to send requests, needs an entry with both. Default one entry that approves what asks for nothing, in its own scope.
	Approve []Approval
	// Packages are npm packages that code may import without approval although its manifest's dependencies do not name them.
	// "*" stands for any characters but "/". Squatters register names that models make up. Default none.
	Packages []string
	// Updates says whether code may change without approval. Default Ask: an approval is bound to digests, and a person who
	// has read the code of one version has not read the next.
	Updates Updates
	// Persons are the names of MCP clients whose answers to an elicitation count as a person's. A client names itself, so
	// this trusts everything that can reach the server. Default none.
	Persons []string
	// Limits bound what extensions use.
	Limits Limits
	// Ladder says how far agents may climb the ladder. The first entry that names an agent holds, and an agent that no entry names has
	// [DefaultLadder].
	Ladder []Ladder
	// Hosts are addresses of hosts, used instead of a resolver. Rules that name such a host exactly may dial them, public or
	// not. Default none.
	Hosts map[string][]netip.Addr

	updatesLine int
}

// Ceiling is the most that an extension may do.
type Ceiling struct {
	Bindings []extension.Binding
	// Line is its line in the file, from 1.
	Line int
}

// Approval is authority that is approved in advance.
type Approval struct {
	// Scopes are the scopes in which it holds. Default Own.
	Scopes []Scopes
	// Bindings are everything that the extension may ask for.
	Bindings []extension.Binding
	// Line is its line in the file, from 1. It is 0 for the default.
	Line int
}

// Ladder is how far some agents may climb the ladder, and with which capabilities.
type Ladder struct {
	// Agents are the names of agents. Default: all agents.
	Agents []string
	// Rung is the highest rung. Default: the lowest.
	Rung rung.Rung
	// Bindings are the capabilities behind the rungs, under the names workspace, browser and sandbox. A workspace is the agent's own, which
	// lasts. The ceiling limits them too.
	Bindings []extension.Binding
	// Line is its line in the file, from 1. It is 0 for the default.
	Line int
}

// DefaultLadder is the ladder of an agent that no entry names: code that reaches nothing but the agent's own files and the tools that it
// can call anyway.
func DefaultLadder() Ladder {
	return Ladder{Rung: rung.Isolate, Bindings: []extension.Binding{{Name: "workspace", Grant: workspace.Rights{Path: "/", Access: workspace.ReadWrite}}}}
}

// LadderOf returns the entry of the ladder that holds for an agent, with the bindings that the ceiling leaves.
func (p *Policy) LadderOf(agent string) Ladder {
	l := DefaultLadder()
	if i := slices.IndexFunc(p.Ladder, func(l Ladder) bool { return len(l.Agents) == 0 || slices.Contains(l.Agents, agent) }); i >= 0 {
		l = p.Ladder[i]
	}
	l.Bindings, _ = p.Limit(l.Bindings)
	return l
}

// Scopes are some of the scopes that there are.
type Scopes string

// The scopes of an approval.
const (
	// Own is the scope of the agent or the user who writes the extension.
	Own Scopes = "own"
	// All scopes of a kind, with extensions by any author.
	Agents    Scopes = "agent"
	Users     Scopes = "user"
	Everybody Scopes = "shared"
)

// Updates says what happens with a new version of an active extension.
type Updates string

// What happens with updates.
const (
	// Ask treats an update like a new extension.
	Ask Updates = "ask"
	// Same approves an update that asks for no more than the active version does, in the scope of its author. It does not in
	// wider scopes: other authors may write into these, and their code would run with what was approved for somebody else's.
	Same Updates = "same"
)

// Limits bound what extensions use.
type Limits struct {
	// ExtensionsPerScope is how many extensions one scope may have. Default 100; at most 10,000.
	ExtensionsPerScope int
	// BuildsPerHour is how many builds one scope may have in an hour. A model's generation without a build counts as one. Default
	// 60; at most 100,000.
	BuildsPerHour int
	// Nesting is how deep tools call tools. Default 8; at most 64.
	Nesting int
	// FailuresBeforeBreak is how many failures in a row, for one caller in one process, pause the tool for that caller for
	// BreakFor. Default 5; at most 10,000.
	FailuresBeforeBreak int
	// BreakFor is from a second to a day. Default 5 minutes.
	BreakFor time.Duration
	// StoredPerAuthor is how many bytes the versions of one author may take in the store. Default 1 GiB; from 1 MiB to 1,048,576 GiB.
	StoredPerAuthor int64
	// Stored is how many bytes the versions of all authors may take. Default 8 GiB; from 1 MiB to 1,048,576 GiB.
	Stored int64
	// KeptPerScope is how many bytes the workspaces of the extensions in one scope may take, and likewise their buckets, also those of
	// extensions that were removed. Default 8 GiB; from 1 MiB to 1,048,576 GiB.
	KeptPerScope int64
	// Kept is how many bytes all workspaces may take, and likewise all buckets. Default 32 GiB; from 1 MiB to 1,048,576 GiB.
	Kept int64
	// AuditedCalls is how many bytes the calls in the audit log may take. The oldest go first, and decisions stay. Default 1 GiB; from 1
	// MiB to 1,048,576 GiB.
	AuditedCalls int64
}

// Default is the policy without a file.
func Default() *Policy {
	return &Policy{
		Approve: []Approval{{Scopes: []Scopes{Own}}},
		Updates: Ask,
		Limits: Limits{
			ExtensionsPerScope: 100, BuildsPerHour: 60, Nesting: 8, FailuresBeforeBreak: 5, BreakFor: 5 * time.Minute,
			StoredPerAuthor: 1 << 30, Stored: 8 << 30, KeptPerScope: 8 << 30, Kept: 32 << 30, AuditedCalls: 1 << 30,
		},
	}
}

// Limit cuts what an extension asks for down to the ceiling, as [extension.Limit] does.
func (p *Policy) Limit(asked []extension.Binding) (granted []extension.Binding, cut []extension.Change) {
	if p.Ceiling == nil {
		return extension.Merge(asked), nil
	}
	return extension.Limit(p.Ceiling.Bindings, asked)
}

// Person reports whether a person answers the elicitations of an MCP client of this name.
func (p *Policy) Person(client string) bool { return slices.Contains(p.Persons, client) }
