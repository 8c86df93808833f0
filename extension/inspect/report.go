package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
)

// Input is what a report is made from.
type Input struct {
	// Kinds say which globals of the environment need a binding. Default: [capabilities.Builtin].
	Kinds capability.Set
	// FS is the source tree, with packages in its node_modules, and Entry the module that exports the extension. Inspect reads
	// all code in FS. Leave out files that are in no bundle, such as tests of packages, to keep them out of the report.
	FS    fs.FS
	Entry string
	// Bindings are those that the manifest asks for.
	Bindings []extension.Binding
	// NodeFS is the one of Bindings whose files node's module fs has. It is empty if there is none.
	NodeFS string
	// Vars reports whether the manifest has vars, which are no binding.
	Vars bool
	// Gaps are what could not be read of a manifest with problems. [Faults] finds nothing that only follows from them.
	Gaps     extension.Gaps
	Packages []PackageInfo
	// Component is the size of the built component in bytes. It is 0 if nothing was built.
	Component int64
	// Previous is the report of the previous version. It is nil if there is none.
	Previous *Report
}

// PackageInfo is an npm package that the extension brings.
type PackageInfo struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	License  string   `json:"license,omitempty"`
	Size     int64    `json:"size"` // bytes
	Warnings []string `json:"warnings,omitempty"`
}

// Report says what the code of an extension appears to do, for the person who approves it. It informs, but does not
// protect: an author can write code so that no report sees what it does. The same input gives the same report. All text in
// it is printable.
type Report struct {
	Entry string `json:"entry"`
	// Files and Size, in bytes, count the extension's own files. The others count code files in node_modules.
	Files         int   `json:"files"`
	Size          int64 `json:"size"`
	PackageFiles  int   `json:"packageFiles"`
	PackageSize   int64 `json:"packageSize"`
	ComponentSize int64 `json:"componentSize"`

	// NodeFS is the binding whose files node's module fs has, for all code of the extension and its packages. It is empty if there is
	// none.
	NodeFS string `json:"nodeFS,omitempty"`

	// BindingsUsed are bindings of the manifest that the extension's own files name, or that a global such as fetch uses.
	// BindingsUnused are in the manifest but never named. UndeclaredBindings are named but not in the manifest.
	BindingsUsed       []Use    `json:"bindingsUsed,omitempty"`
	BindingsUnused     []string `json:"bindingsUnused,omitempty"`
	UndeclaredBindings []Use    `json:"undeclaredBindings,omitempty"`
	// EnvElsewhere are places where env is passed on as a whole or a binding's name is computed, so uses may be missing above.
	EnvElsewhere []Place `json:"envElsewhere,omitempty"`

	// Hosts are the hosts in strings, in byte order.
	Hosts []Host `json:"hosts,omitempty"`
	// Eval are places where text may become code, or code may be loaded later.
	Eval []Sign `json:"eval,omitempty"`
	// Obfuscation are signs of code that is meant not to be read.
	Obfuscation []Sign `json:"obfuscation,omitempty"`
	// Unread are files that could not be read with certainty, each from a place on.
	Unread []Sign `json:"unread,omitempty"`
	// Omitted is how many places are not listed, since there are too many.
	Omitted int `json:"omitted,omitempty"`

	// Component is set for a component that came without source. Then nothing is known of files, hosts, eval and packages.
	Component *Component `json:"component,omitempty"`

	Packages []PackageInfo   `json:"packages,omitempty"`
	New      []PackageChange `json:"newPackages,omitempty"`
	Changed  []PackageChange `json:"changedPackages,omitempty"`
	Gone     []PackageChange `json:"gonePackages,omitempty"`
}

// Use is a name, with the first places where it is used.
type Use struct {
	Name   string  `json:"name"`
	Places []Place `json:"places"`
}

// Host is a host in a string. "*" stands for a computed part.
type Host struct {
	Name string `json:"name"`
	// Covered is set if a rule of an http binding names the host. Methods and paths are not compared.
	Covered bool    `json:"covered"`
	Places  []Place `json:"places"`
}

// Sign is something to look at.
type Sign struct {
	Place
	What string `json:"what"`
}

// PackageChange is a difference in a package from the previous version. A version is empty if the package is absent there.
type PackageChange struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

const (
	maxSigns  = 200 // of a kind in a report
	maxPlaces = 10  // of a name
	// maxInFile is how many signs of a kind one file can contribute, so that no file crowds out those of others.
	maxInFile = 20
	// maxRead is how much code is read, in bytes.
	maxRead = 256 << 20
)

// Inspect makes a report. It reads files as tokens and runs nothing. The report lists what it cannot read.
func Inspect(in Input) Report {
	if len(in.Kinds.All()) == 0 {
		in.Kinds = capabilities.Builtin
	}
	c := &collector{
		needs: globals(in.Kinds), bound: boundGlobals(in.Kinds),
		report: Report{Entry: printable.OneLine(in.Entry), ComponentSize: in.Component, NodeFS: printable.OneLine(in.NodeFS)},
		env:    map[string][]Place{}, hosts: map[string][]Place{}, globals: map[string][]Place{},
	}
	own, packages := codeFiles(in.FS)
	for _, list := range [][]codeFile{own, packages} {
		for _, f := range list {
			c.file(in.FS, f)
		}
	}
	if in.Vars {
		delete(c.env, "vars")
	}
	c.bindings(in.Bindings)
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		c.report.Hosts = append(c.report.Hosts, Host{name, covered(name, in.Bindings), c.hosts[name]})
	}
	c.report.Packages = printablePackages(in.Packages)
	if in.Previous != nil {
		c.packages(in.Previous.Packages)
	}
	return c.report
}

// codeFile is a file to inspect. If it is not read, only its size counts.
type codeFile struct {
	name  string
	size  int64
	inner bool // in node_modules
	read  bool
}

// codeFiles lists the extension's own files, and the code of packages, in byte order of their paths.
func codeFiles(fsys fs.FS) (own, packages []codeFile) {
	_ = fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // the bundler cannot read it either
		}
		f := codeFile{name: name, inner: npmspec.InPackage(name)}
		if info, err := e.Info(); err == nil {
			f.size = info.Size()
		}
		base := path.Base(name)
		types := strings.HasSuffix(base, ".d.ts") || strings.HasSuffix(base, ".d.mts") || strings.HasSuffix(base, ".d.cts")
		f.read = jslex.IsCode(name) && !types
		switch {
		case f.inner && f.read:
			packages = append(packages, f)
		case !f.inner:
			f.read = f.read || path.Ext(name) == ".json" && base != "package.json" && base != "package-lock.json" && base != "tsconfig.json"
			own = append(own, f)
		}
		return nil
	})
	return own, packages
}

// collector gathers what is found.
type collector struct {
	report              Report
	read                int64
	needs               map[string]string // globals, and the interfaces they need
	bound               map[string]string // interfaces whose globals need a binding of a certain name
	env, hosts, globals map[string][]Place
	inFile              map[*[]Sign]int
	faults              *faults // nil for a report
}

func (c *collector) file(fsys fs.FS, f codeFile) {
	if f.inner {
		c.report.PackageFiles++
		c.report.PackageSize += f.size
	} else {
		c.report.Files++
		c.report.Size += f.size
	}
	if !f.read {
		return
	}
	c.inFile = map[*[]Sign]int{}
	text, err := readFile(fsys, f.name, extension.MaxSource)
	c.read += int64(len(text))
	switch {
	case errors.Is(err, bounded.ErrTooLarge):
		c.sign(&c.report.Unread, Place{File: printable.OneLine(f.name)}, "larger than "+printable.Size(extension.MaxSource))
		return
	case err != nil:
		c.sign(&c.report.Unread, Place{File: printable.OneLine(f.name)}, "cannot be read")
		return
	case c.read > maxRead:
		c.sign(&c.report.Unread, Place{File: printable.OneLine(f.name)}, "beyond the "+printable.Size(maxRead)+" that are read")
		return
	}
	s := lex(f.name, text, jslex.IsJSX(f.name))
	if s.unclear != "" {
		c.sign(&c.report.Unread, s.place(s.unclearAt), "from here on the code may be read wrongly, because of "+s.unclear)
	}
	c.scan(s, f.inner)
}

// sign adds to one of the report's lists.
func (c *collector) sign(list *[]Sign, at Place, what string) {
	if c.room(list) {
		*list = append(*list, Sign{at, printable.OneLine(what)})
	}
}

// room reports whether a list can have one more sign of this file, and counts it.
func (c *collector) room(list *[]Sign) bool {
	c.inFile[list]++
	if c.inFile[list] > maxInFile || len(*list) >= maxSigns {
		c.report.Omitted++
		return false
	}
	return true
}

// use adds a place of a name.
func (c *collector) use(uses map[string][]Place, name string, s *source, offset int) {
	name = printable.OneLine(printable.Short(name, 253))
	if len(uses[name]) >= maxPlaces || len(uses) >= maxSigns && uses[name] == nil {
		c.report.Omitted++
		return
	}
	uses[name] = append(uses[name], s.place(offset))
}

// bindings compares the bindings used with those in the manifest.
func (c *collector) bindings(asked []extension.Binding) {
	used := maps.Clone(c.env)
	for _, name := range slices.Sorted(maps.Keys(c.globals)) {
		served := false
		for _, b := range asked {
			// A global stands for the first binding of its interface, or for the binding of a certain name.
			k := b.Grant.Kind()
			if k.Interface == name && (k.GlobalBinding == "" || b.Name == k.GlobalBinding) {
				used[b.Name] = append(slices.Clone(used[b.Name]), c.globals[name]...)
				served = true
				break
			}
		}
		if binding := c.bound[name]; binding != "" && !served {
			used[binding] = append(slices.Clone(used[binding]), c.globals[name]...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		use := Use{name, used[name][:min(len(used[name]), maxPlaces)]}
		if slices.ContainsFunc(asked, func(b extension.Binding) bool { return b.Name == name }) {
			c.report.BindingsUsed = append(c.report.BindingsUsed, use)
		} else {
			c.report.UndeclaredBindings = append(c.report.UndeclaredBindings, use)
		}
	}
	for _, b := range asked {
		if used[b.Name] == nil && b.Name != c.report.NodeFS {
			c.report.BindingsUnused = append(c.report.BindingsUnused, printable.OneLine(b.Name))
		}
	}
	slices.Sort(c.report.BindingsUnused)
}

// covered says whether a binding names a host.
func covered(name string, bindings []extension.Binding) bool {
	name = hostOnly(name)
	for _, b := range bindings {
		g, ok := b.Grant.(capability.Hoster)
		if !ok {
			continue
		}
		for _, host := range g.Hosts() {
			host = strings.ToLower(host)
			below, wildcard := strings.CutPrefix(host, "*.")
			if host == "*" || host == name || wildcard && strings.HasSuffix(name, "."+below) {
				return true
			}
		}
	}
	return false
}

// packages compares the packages with those of the previous version.
func (c *collector) packages(before []PackageInfo) {
	was, is := versions(before), versions(c.report.Packages)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		from, known := was[name]
		switch change := (PackageChange{name, from, is[name]}); {
		case !known:
			c.report.New = append(c.report.New, change)
		case change.From != change.To:
			c.report.Changed = append(c.report.Changed, change)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, kept := is[name]; !kept {
			c.report.Gone = append(c.report.Gone, PackageChange{name, was[name], ""})
		}
	}
}

// versions returns the versions of each package. There can be several.
func versions(list []PackageInfo) map[string]string {
	all := map[string][]string{}
	for _, p := range list {
		all[p.Name] = append(all[p.Name], p.Version)
	}
	joined := map[string]string{}
	for name, list := range all {
		slices.Sort(list)
		joined[name] = strings.Join(slices.Compact(list), ", ")
	}
	return joined
}

// printablePackages copies a list of packages, sorted, with printable text.
func printablePackages(list []PackageInfo) []PackageInfo {
	if len(list) == 0 {
		return nil
	}
	out := make([]PackageInfo, len(list))
	for i, p := range list {
		cut := func(s string) string { return printable.OneLine(printable.Short(s, 256)) }
		out[i] = PackageInfo{cut(p.Name), cut(p.Version), cut(p.License), p.Size, nil}
		for n, w := range p.Warnings {
			if n == maxInFile {
				out[i].Warnings = append(out[i].Warnings, fmt.Sprintf("%d more", len(p.Warnings)-n))
				break
			}
			out[i].Warnings = append(out[i].Warnings, cut(w))
		}
	}
	slices.SortStableFunc(out, func(a, b PackageInfo) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return out
}
