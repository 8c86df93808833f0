// Package capabilities lists Stile's kinds of capability. Each has a folder below this one.
package capabilities

//go:generate go test -run ^TestWIT$ . -update

import (
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/signals"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

// Builtin are the kinds, in the order in which manifests and messages name them. A program with its own kinds passes
// Builtin.With(...) to functions that read manifests.
var Builtin = capability.NewSet(
	http.Kind,
	workspace.Kind,
	browser.Kind,
	kv.Kind,
	&clock.Kind.Kind,
	&random.Kind.Kind,
	&console.Kind.Kind,
	&blob.Kind.Kind,
	workspace.DiskKind,
	sandbox.Kind,
	code.Kind,
	tools.Kind,
	signals.Kind,
	&runs.Kind.Kind,
)
