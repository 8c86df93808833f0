package workspace

import (
	"context"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// DiskKind is a directory of the machine.
var DiskKind = &capability.Kind{
	Name: "dir", Interface: Interface, ParseSpec: parseDiskSpec,
	SpecForm: "dir:PATH[,rw]", SpecMeans: "a directory of this machine; read-only without rw, and never one with STILE_HOME in it",
}

// DiskRights are rights to a directory of the machine. Only a command line can name one; a manifest cannot ask for it.
type DiskRights struct {
	Path   string
	Access Access
}

func parseDiskSpec(s capability.Spec) (capability.Grant, error) {
	const example = "dir:PATH[,rw]"
	if s.Argument == "" || len(s.Argument) > maxPath || strings.ContainsRune(s.Argument, 0) {
		return nil, &capability.MistakeError{Text: "there is no path", Fix: example}
	}
	a, err := specAccess("directory", s.Options, example)
	return DiskRights{Path: s.Argument, Access: a}, err
}

// Kind implements [capability.Grant].
func (DiskRights) Kind() *capability.Kind { return DiskKind }

// Interface implements [capability.Grant].
func (DiskRights) Interface() string { return Interface }

// Document implements [capability.Grant]. It is for people: no manifest has it.
func (g DiskRights) Document() any { return g.Access.document(g.Path) }

// Describe implements [capability.Grant].
func (g DiskRights) Describe() []string {
	return []string{g.Access.describe("the directory " + printable.Line(g.Path) + " of this machine")}
}

// Authority implements [capability.Grant].
func (g DiskRights) Authority() []string {
	return []string{printable.Line("dir " + g.Path + " " + string(g.Access))}
}

// Covers implements [capability.Grant]. A link's target may change, so no directory covers another.
func (g DiskRights) Covers(asked capability.Grant) bool {
	a, ok := asked.(DiskRights)
	return ok && g.Path == a.Path && g.Access.covers(a.Access)
}

// Reach implements [capability.Reacher].
func (g DiskRights) Reach() (changes, open bool) { return g.Access != Read, false }

// Remedy implements [capability.Remedier].
func (g DiskRights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(DiskRights)
	return remedy(spec, g.Access, w.Access, ok)
}

// Open implements [capability.Opener]. It refuses the site's private folders.
func (g DiskRights) Open(_ context.Context, s *capability.Site) (abi.Capability, error) {
	disk, err := OpenDisk(g.Path, DiskOptions{Refuse: s.Private})
	if err != nil {
		return nil, err
	}
	d := g.Access.of(disk.Directory())
	s.Hold(d, disk.Close)
	return d, nil
}
