package abi

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Resolve holds the declarations of a set of WIT texts, with every name resolved. It is immutable and safe for concurrent use.
type Resolve struct {
	interfaces []*Interface
	worlds     []*World
}

// Parse reads WIT texts in any order. A text may hold one package or several. A package may be
// spread over several texts if at least one has its `package` line. A text without that line
// belongs to the one package that the `package` lines of the other texts name. Every name that
// a text uses must be declared in one of them. The error is a [*SyntaxError].
//
// Items behind `@unstable` are left out, as if they were not there. Items behind `@since` are part of the result; a version above
// that of the package is an error.
//
// Parse refuses texts that are not valid WIT 0.2, and what later drafts of WIT add: `future`, `stream`, `error-context`, `async`
// functions, `map`, lists of fixed length, properties with `get` and `set`, and interfaces imported under another name. It also
// refuses texts beyond generous limits (1 MiB, types nested 100 deep, 1,000 interfaces and worlds).
func Parse(texts ...string) (*Resolve, error) {
	return resolve([]group{looseGroup(texts)}, nil, nil)
}

// Interface finds an interface by its full name, e.g. "stile:capability/kv@0.1.0". It is nil if there is none.
func (r *Resolve) Interface(name string) *Interface {
	for _, i := range r.interfaces {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// WIT prints all interfaces, each as a separate text, as [Interface.WIT] does. It turns a folder into texts for [ParseCapability].
// Worlds are left out.
func (r *Resolve) WIT() []string {
	texts := make([]string, len(r.interfaces))
	for n, i := range r.interfaces {
		texts[n] = i.WIT()
	}
	return texts
}

// World finds a world by its full name, e.g. "stile:extension/extension@0.1.0". It is nil if there is none.
func (r *Resolve) World(name string) *World {
	for _, w := range r.worlds {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// Interfaces lists all interfaces of packages, each after those it uses. Interfaces that a world declares are only in that world.
func (r *Resolve) Interfaces() []*Interface { return slices.Clone(r.interfaces) }

// Worlds lists all worlds, each after those it includes. In their imports, an interface follows those that it uses.
func (r *Resolve) Worlds() []*World { return slices.Clone(r.worlds) }

func (n packageName) String() string { return n.member("") }

// member returns the full name of an interface or world of the package.
func (n packageName) member(name string) string {
	text := n.namespace + ":" + n.name
	if name != "" {
		text += "/" + name
	}
	if n.version != "" {
		text += "@" + n.version
	}
	return text
}

// group is a set of texts that belong together.
type group struct {
	sources []*source
	// loose is set if the texts may belong to several packages and share packages with other groups.
	loose bool
}

func looseGroup(texts []string) group {
	g := group{loose: true}
	for i, text := range texts {
		g.sources = append(g.sources, &source{index: i, text: text})
	}
	return g
}

type resolver struct {
	packages map[packageName]*packageScope
	costs    map[*Type]cost
	// features are the features whose `@unstable` items are included.
	features []string
	// shape may add functions to an interface after its own.
	shape func(*resolver, *interfaceScope) error
	items int
	// includedItems counts the items that worlds include. copied counts the items that are copied for that.
	includedItems, copied int
	out                   *Resolve
}

// packageScope holds the interfaces and worlds of one package, by name.
type packageScope struct {
	name  packageName
	items map[string]packageItem
	// taken are the names of items, in lower case.
	taken map[string]bool
	// group is the group of the package's texts. It is nil for a package in braces.
	group      *group
	documented bool
	// uses are the other packages that items refer to, and the places where they do.
	uses     []packageUse
	progress progress
}

type packageUse struct {
	pkg *packageScope
	at  position
}

// packageItem is an interface or a world.
type packageItem struct {
	iface *interfaceScope
	world *worldScope
}

// textScope resolves the interfaces and worlds that one text names.
type textScope struct {
	pkg     *packageScope
	aliases map[string]path
}

type progress uint8

const (
	untouched progress = iota
	working
	done
)

type interfaceScope struct {
	tree     *interfaceTree
	text     *textScope
	out      *Interface
	progress progress
	// excluded is the feature that the interface needs and that is not enabled.
	excluded string
	// inline is set if a world declares the interface.
	inline bool
	uses   []*interfaceScope
	typeScope
	parts int
}

type worldScope struct {
	tree     *worldTree
	text     *textScope
	out      *World
	progress progress
	excluded string
	imports  externs
	exports  externs
}

// typeScope holds the types and resources that a name can mean in an interface or world.
type typeScope struct {
	iface    *Interface
	entities map[string]*entity
	taken    names
}

// entity is a type or a resource.
type entity struct {
	decl     *typeDeclTree
	progress progress
	typ      *Type
	resource *Resource
	// excluded is the feature that the entity needs and that is not enabled.
	excluded string
}

// names are the names taken in one scope, as folded returns them.
type names map[string]bool

// folded removes the differences that the component model ignores between names: case and hyphens.
func folded(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "") }

func (n names) add(id ident) error {
	if n[folded(id.name)] {
		return id.at.errorf("the name `%s` is already taken; case and hyphens make no difference", id.name)
	}
	n[folded(id.name)] = true
	return nil
}

// cost measures the work that a type can cause.
type cost struct {
	depth, parts int
	borrow       bool
}

func (c *cost) add(inner cost) {
	c.depth = max(c.depth, inner.depth+1)
	c.parts += inner.parts
	c.borrow = c.borrow || inner.borrow
}

func (c *cost) check(at position) error {
	switch {
	case c.depth > maxDepth:
		return at.errorf("types nest more than %d deep", maxDepth)
	case c.parts > maxParts:
		return at.errorf("this has more than %d fields, cases and types, with named types written out", maxParts)
	}
	return nil
}

func resolve(groups []group, features []string, shape func(*resolver, *interfaceScope) error) (*Resolve, error) {
	r := &resolver{
		packages: map[packageName]*packageScope{},
		costs:    map[*Type]cost{},
		features: features,
		shape:    shape,
		out:      &Resolve{},
	}
	var packages []*packageTree
	scopes := map[*packageTree]*packageScope{}
	for i := range groups {
		g := &groups[i]
		trees, err := r.parse(g)
		if err != nil {
			return nil, err
		}
		for _, text := range trees {
			if scopes[text.main], err = r.openMain(g, text.main); err != nil {
				return nil, err
			}
			packages = append(packages, text.main)
			for _, tree := range text.nested {
				if scopes[tree], err = r.openNested(tree); err != nil {
					return nil, err
				}
				packages = append(packages, tree)
			}
		}
	}
	var texts []*textScope
	var interfaces []*interfaceScope
	var worlds []*worldScope
	for _, tree := range packages {
		text, err := newTextScope(scopes[tree], tree)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
		for _, t := range tree.interfaces {
			scope := &interfaceScope{tree: t, text: text, out: &Interface{Name: tree.name.member(t.name), Doc: t.doc}}
			if scope.excluded, err = r.excludes(text.pkg, t.gate); err != nil {
				return nil, err
			}
			interfaces = append(interfaces, scope)
			if err := r.declare(text.pkg, t.ident, packageItem{iface: scope}); err != nil {
				return nil, err
			}
		}
		for _, t := range tree.worlds {
			scope := &worldScope{tree: t, text: text, out: &World{Name: tree.name.member(t.name), Doc: t.doc}}
			if scope.excluded, err = r.excludes(text.pkg, t.gate); err != nil {
				return nil, err
			}
			worlds = append(worlds, scope)
			if err := r.declare(text.pkg, t.ident, packageItem{world: scope}); err != nil {
				return nil, err
			}
		}
	}
	for i, tree := range packages {
		if err := r.checkAliases(texts[i], tree); err != nil {
			return nil, err
		}
	}
	for _, i := range interfaces {
		if err := r.resolveInterface(i, i.tree.at); err != nil {
			return nil, err
		}
	}
	for _, w := range worlds {
		if err := r.resolveWorld(w, w.tree.at); err != nil {
			return nil, err
		}
	}
	for _, tree := range packages {
		if err := scopes[tree].checkCycles(tree.at); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// parse reads the texts of a group. A text without a `package` line gets the name that the other texts have.
func (r *resolver) parse(g *group) ([]*textTree, error) {
	var trees []*textTree
	var home *packageTree
	ambiguous := false
	for _, source := range g.sources {
		tree, err := parseText(source)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		switch main := tree.main; {
		case main.name == (packageName{}), r.shape != nil && main.name.isOurs():
		case home == nil:
			home = main
		case home.name != main.name && !g.loose:
			return nil, main.at.errorf("the package is %v here and %v in another file of the folder; move one of them into a folder below `deps`", main.name, home.name)
		case home.name != main.name:
			ambiguous = true
		}
	}
	for _, tree := range trees {
		if tree.main.name != (packageName{}) {
			continue
		}
		alone := len(tree.main.interfaces)+len(tree.main.worlds)+len(tree.main.aliases) == 0 && len(tree.nested) > 0
		switch {
		case home != nil && !ambiguous:
			tree.main.name = home.name
		case alone && g.loose:
		case ambiguous:
			return nil, tree.main.at.errorf("the text has no `package` line, and the other texts have those of several packages; begin it with `package namespace:name@1.2.3;`")
		default:
			return nil, tree.main.at.errorf("there is no `package` line in this package; a WIT text starts with its package: `package namespace:name@1.2.3;`")
		}
	}
	return trees, nil
}

// openMain finds or makes the scope of a text's package.
func (r *resolver) openMain(g *group, tree *packageTree) (*packageScope, error) {
	if tree.name == (packageName{}) {
		return &packageScope{taken: map[string]bool{}}, nil // the text has no items
	}
	pkg := r.packages[tree.name]
	switch {
	case pkg == nil:
		pkg = &packageScope{name: tree.name, items: map[string]packageItem{}, taken: map[string]bool{}, group: g}
		r.packages[tree.name] = pkg
	case pkg.group != g:
		return nil, tree.at.errorf("the package %v is defined twice; keep it in one place", tree.name)
	case pkg.documented && tree.doc != "":
		return nil, tree.at.errorf("the `package` line of %v has a doc comment in two texts; keep one", tree.name)
	}
	pkg.documented = pkg.documented || tree.doc != ""
	return pkg, nil
}

// openNested makes the scope of a package in braces.
func (r *resolver) openNested(tree *packageTree) (*packageScope, error) {
	if r.packages[tree.name] != nil {
		return nil, tree.at.errorf("the package %v is defined twice; keep it in one place", tree.name)
	}
	pkg := &packageScope{name: tree.name, items: map[string]packageItem{}, taken: map[string]bool{}}
	r.packages[tree.name] = pkg
	return pkg, nil
}

// newTextScope adds the aliases of a text, which must differ from the names of its items.
func newTextScope(pkg *packageScope, tree *packageTree) (*textScope, error) {
	text := &textScope{pkg: pkg, aliases: map[string]path{}}
	taken := names{}
	for _, a := range tree.aliases {
		if err := taken.add(a.as); err != nil {
			return nil, err
		}
		text.aliases[a.as.name] = a.target
	}
	for _, i := range tree.interfaces {
		if _, clash := text.aliases[i.name]; clash {
			return nil, i.at.errorf("the name `%s` is already taken, by a `use` of this text", i.name)
		}
	}
	for _, w := range tree.worlds {
		if _, clash := text.aliases[w.name]; clash {
			return nil, w.at.errorf("the name `%s` is already taken, by a `use` of this text", w.name)
		}
	}
	return text, nil
}

// checkAliases resolves the aliases of a text, even those that nothing uses.
func (r *resolver) checkAliases(text *textScope, tree *packageTree) error {
	for _, a := range tree.aliases {
		feature, err := r.excludes(text.pkg, a.gate)
		if err != nil {
			return err
		}
		if feature != "" {
			continue
		}
		item, err := r.find(text, a.target)
		if err != nil {
			return err
		}
		if item.iface == nil && a.target.pkg != (packageName{}) {
			return a.target.name.at.errorf("`%s` is a world, not an interface", a.target.name.name)
		}
	}
	return nil
}

// excludes returns the feature that an item of pkg needs and that is not enabled. It is empty if the item is there.
func (r *resolver) excludes(pkg *packageScope, g gate) (string, error) {
	switch {
	case g.since != "" && pkg.name.version == "":
		return "", g.gatedAt.errorf("`@since` needs a package with a version: `package %v@1.2.3;`", pkg.name)
	case g.since != "" && compareVersions(g.since, pkg.name.version) > 0:
		return "", g.gatedAt.errorf("the item is there since %s, and the package %v is older; raise the version of the package", g.since, pkg.name)
	case g.feature != "" && !slices.Contains(r.features, g.feature):
		return g.feature, nil
	}
	return "", nil
}

// excludedError is the error of a reference to an excluded item.
func excludedError(id ident, feature string) error {
	return id.at.errorf("`%s` is `@unstable(feature = %s)`, which is not enabled; put the same gate before what refers to it", id.name, feature)
}

// checkCycles refuses packages that use each other.
func (pkg *packageScope) checkCycles(at position) error {
	switch pkg.progress {
	case done:
		return nil
	case working:
		return at.errorf("the package %v uses itself through other packages", pkg.name)
	case untouched:
	}
	pkg.progress = working
	for _, use := range pkg.uses {
		if err := use.pkg.checkCycles(use.at); err != nil {
			return err
		}
	}
	pkg.progress = done
	return nil
}

func (r *resolver) declare(pkg *packageScope, id ident, item packageItem) error {
	if err := r.count(id); err != nil {
		return err
	}
	lower := strings.ToLower(id.name)
	if pkg.taken[lower] {
		return id.at.errorf("the name `%s` is already taken", id.name)
	}
	pkg.taken[lower] = true
	pkg.items[id.name] = item
	return nil
}

// count bounds how many interfaces and worlds there are.
func (r *resolver) count(id ident) error {
	if r.items++; r.items > maxItems {
		return id.at.errorf("the texts declare more than %d interfaces and worlds", maxItems)
	}
	return nil
}

// find looks up an interface or world.
func (r *resolver) find(text *textScope, p path) (packageItem, error) {
	if p.pkg == (packageName{}) {
		if target, ok := text.aliases[p.name.name]; ok {
			p = target
		}
	}
	pkg := text.pkg
	if p.pkg != (packageName{}) {
		pkg = r.packages[p.pkg]
		if own := text.pkg.name; pkg == nil && p.pkg == (packageName{own.namespace, own.name, ""}) {
			pkg = text.pkg
		}
	}
	if pkg == nil {
		return packageItem{}, r.noPackage(p)
	}
	item, ok := pkg.items[p.name.name]
	if !ok {
		return item, p.name.at.errorf("there is no interface or world `%s` in the package %v", p.name.name, pkg.name)
	}
	if pkg != text.pkg && !slices.ContainsFunc(text.pkg.uses, func(u packageUse) bool { return u.pkg == pkg }) {
		text.pkg.uses = append(text.pkg.uses, packageUse{pkg, p.name.at})
	}
	feature := ""
	if item.iface != nil {
		feature = item.iface.excluded
	} else {
		feature = item.world.excluded
	}
	if feature != "" {
		return item, excludedError(p.name, feature)
	}
	return item, nil
}

// noPackage lists the versions that exist, since a wrong version is the usual mistake.
func (r *resolver) noPackage(p path) error {
	var others []string
	for name := range maps.Keys(r.packages) {
		if name.namespace == p.pkg.namespace && name.name == p.pkg.name {
			others = append(others, name.member(p.name.name))
		}
	}
	if len(others) == 0 {
		return p.name.at.errorf("there is no package %v among the texts", p.pkg)
	}
	slices.Sort(others)
	return p.name.at.errorf("there is no package %v among the texts, only %s", p.pkg, strings.Join(others, ", "))
}

func (r *resolver) findInterface(text *textScope, p path) (*interfaceScope, error) {
	item, err := r.find(text, p)
	if err != nil {
		return nil, err
	}
	if item.iface == nil {
		return nil, p.name.at.errorf("`%s` is a world, not an interface", p.name.name)
	}
	return item.iface, nil
}

// resolveInterface resolves an interface that is referred to at a position.
func (r *resolver) resolveInterface(i *interfaceScope, at position) error {
	switch i.progress {
	case done:
		return nil
	case working:
		return at.errorf("the interface `%s` uses itself, directly or through others", i.tree.name)
	case untouched:
	}
	i.progress = working
	i.typeScope = typeScope{iface: i.out, entities: map[string]*entity{}, taken: names{}}
	if i.excluded != "" {
		return i.checkExcluded()
	}
	declared, err := r.body(i.text, &i.typeScope, &i.tree.bodyTree, &i.uses)
	if err != nil {
		return err
	}
	i.parts = declared.parts
	i.out.Types, i.out.Resources, i.out.Funcs = declared.types, declared.resources, declared.funcs
	if r.shape != nil && !i.inline {
		if err := r.shape(r, i); err != nil {
			return err
		}
	}
	if i.parts > maxInterfaceParts {
		return i.tree.at.errorf("the interface `%s` has more than %d fields, cases and types, with named types written out", i.tree.name, maxInterfaceParts)
	}
	i.progress = done
	if !i.inline {
		r.out.interfaces = append(r.out.interfaces, i.out)
	}
	return nil
}

// checkExcluded refuses types that remain when their interface is excluded.
func (i *interfaceScope) checkExcluded() error {
	i.progress = done
	for _, decl := range i.tree.types {
		if decl.feature == "" {
			return decl.at.errorf("the type `%s` is always there and its interface only with the feature `%s`; put `@unstable(feature = %[2]s)` before the type too", decl.name, i.excluded)
		}
	}
	return nil
}

// declarations are the declarations in a body.
type declarations struct {
	types     []*Type
	resources []*Resource
	funcs     []*Func
	parts     int
}

// body resolves the declarations of an interface or a world in its scope, and adds the interfaces that it uses to deps.
func (r *resolver) body(text *textScope, scope *typeScope, tree *bodyTree, deps *[]*interfaceScope) (*declarations, error) {
	d := &declarations{}
	for _, use := range tree.uses {
		if err := r.use(text, scope, deps, use); err != nil {
			return nil, err
		}
	}
	for _, decl := range tree.types {
		e := &entity{decl: decl}
		var err error
		if e.excluded, err = r.excludes(text.pkg, decl.gate); err != nil {
			return nil, err
		}
		if decl.resource {
			e.progress = done
			e.resource = &Resource{Name: decl.name, Interface: scope.iface, Doc: decl.doc}
			if e.excluded == "" {
				d.resources = append(d.resources, e.resource)
			}
		}
		if err := scope.declare(decl.ident, e); err != nil {
			return nil, err
		}
	}
	for _, decl := range tree.types {
		e := scope.entities[decl.name]
		if e.excluded != "" {
			continue
		}
		if err := r.resolveEntity(scope, e); err != nil {
			return nil, err
		}
		if decl.kind != 0 {
			d.types = append(d.types, e.typ)
			d.parts += r.costs[e.typ].parts
		}
	}
	members := map[string]names{}
	for _, tree := range tree.funcs {
		if err := scope.reserve(tree, members); err != nil {
			return nil, err
		}
		feature, err := r.excludes(text.pkg, tree.gate)
		if err != nil {
			return nil, err
		}
		if feature != "" {
			continue
		}
		f, parts, err := r.function(scope, tree)
		if err != nil {
			return nil, err
		}
		d.parts += parts
		d.funcs = append(d.funcs, f)
	}
	return d, nil
}

// use brings names of another interface into scope, and adds that interface to deps.
func (r *resolver) use(text *textScope, scope *typeScope, deps *[]*interfaceScope, use useTree) error {
	feature, err := r.excludes(text.pkg, use.gate)
	if err != nil {
		return err
	}
	if feature != "" {
		for _, n := range use.names {
			if err := scope.declare(n.as, &entity{progress: done, excluded: feature}); err != nil {
				return err
			}
		}
		return nil
	}
	from, err := r.findInterface(text, use.from)
	if err != nil {
		return err
	}
	if err := r.resolveInterface(from, use.from.name.at); err != nil {
		return err
	}
	for _, n := range use.names {
		e := from.entities[n.name.name]
		switch {
		case e == nil:
			return n.name.at.errorf("there is no type or resource `%s` in the interface %s", n.name.name, from.out.Name)
		case e.excluded != "":
			return excludedError(n.name, e.excluded)
		}
		if err := scope.declare(n.as, e); err != nil {
			return err
		}
	}
	if len(use.names) > 0 && !slices.Contains(*deps, from) {
		*deps = append(*deps, from)
	}
	return nil
}

func (s *typeScope) declare(id ident, e *entity) error {
	if err := s.taken.add(id); err != nil {
		return err
	}
	s.entities[id.name] = e
	return nil
}

// findEntity looks up a type or resource.
func (r *resolver) findEntity(scope *typeScope, id ident) (*entity, error) {
	e := scope.entities[id.name]
	switch {
	case e == nil && (id.name == "float32" || id.name == "float64"):
		return nil, id.at.errorf("there is no type or resource `%s` here; it is now called `f%s`", id.name, strings.TrimPrefix(id.name, "float"))
	case e == nil:
		return nil, id.at.errorf("there is no type or resource `%s` here", id.name)
	}
	if e.excluded != "" {
		return nil, excludedError(id, e.excluded)
	}
	if e.progress == working {
		return nil, id.at.errorf("the type `%s` contains itself", id.name)
	}
	return e, r.resolveEntity(scope, e)
}

func (r *resolver) resolveEntity(scope *typeScope, e *entity) error {
	if e.progress == done {
		return nil
	}
	e.progress = working
	var err error
	switch decl := e.decl; {
	case decl.alias == nil:
		e.typ, err = r.declaredType(scope, decl)
	case decl.alias.kind == 0:
		var target *entity
		if target, err = r.findEntity(scope, decl.alias.name); err == nil {
			e.typ, e.resource = target.typ, target.resource
		}
	default:
		e.typ, err = r.resolveType(scope, decl.alias)
	}
	e.progress = done
	return err
}

// declaredType makes the type of a record, variant, enum or flags.
func (r *resolver) declaredType(scope *typeScope, decl *typeDeclTree) (*Type, error) {
	t := &Type{Kind: decl.kind, Name: decl.name, Interface: scope.iface, Doc: decl.doc}
	taken := names{}
	total := cost{depth: 1, parts: 1 + len(decl.members)}
	for _, m := range decl.members {
		if err := taken.add(m.ident); err != nil {
			return nil, err
		}
		var payload *Type
		if m.typ != nil {
			var err error
			if payload, err = r.resolveType(scope, m.typ); err != nil {
				return nil, err
			}
			total.add(r.costs[payload])
		}
		switch decl.kind {
		case KindRecord:
			t.Fields = append(t.Fields, Field{m.name, payload, m.doc})
		case KindFlags:
			t.Labels = append(t.Labels, m.name)
		default:
			t.Cases = append(t.Cases, Case{m.name, payload, m.doc})
		}
	}
	r.costs[t] = total
	return t, total.check(decl.at)
}

func (r *resolver) resolveType(scope *typeScope, tree *typeTree) (*Type, error) {
	t := &Type{Kind: tree.kind}
	total := cost{depth: 1, parts: 1}
	switch tree.kind {
	case 0, KindOwn, KindBorrow:
		e, err := r.findEntity(scope, tree.name)
		if err != nil {
			return nil, err
		}
		if e.resource == nil {
			if tree.kind == 0 {
				return e.typ, nil
			}
			return nil, tree.name.at.errorf("`%s` is not a resource", tree.name.name)
		}
		if tree.kind == 0 {
			t.Kind = KindOwn
		}
		t.Resource = e.resource
		total.borrow = tree.kind == KindBorrow
	default:
		for i, elem := range tree.elems {
			if elem == nil {
				continue
			}
			inner, err := r.resolveType(scope, elem)
			if err != nil {
				return nil, err
			}
			total.add(r.costs[inner])
			t.setElem(i, inner)
		}
	}
	r.costs[t] = total
	return t, total.check(tree.at)
}

// setElem stores an inner type where the kind of t keeps it.
func (t *Type) setElem(i int, inner *Type) {
	switch {
	case t.Kind == KindTuple:
		t.Fields = append(t.Fields, Field{Name: strconv.Itoa(i), Type: inner})
	case t.Kind == KindResult && i == 0:
		t.Ok = inner
	case t.Kind == KindResult:
		t.Err = inner
	default:
		t.Elem = inner
	}
}

// reserve takes the name of a function in s. members holds the names taken in each resource.
func (s *typeScope) reserve(tree *funcTree, members map[string]names) error {
	if tree.form == formFree {
		return s.taken.add(tree.ident)
	}
	taken := members[tree.resource]
	if taken == nil {
		taken = names{}
		members[tree.resource] = taken
	}
	switch constructor := "[constructor]"; { // a method may be called %constructor
	case tree.form != formConstructor && folded(tree.name) == folded(tree.resource):
		return tree.at.errorf("the resource `%s` cannot have a method of its own name", tree.resource)
	case tree.form != formConstructor:
		return taken.add(tree.ident)
	case taken[constructor]:
		return tree.at.errorf("the resource `%s` has a constructor already", tree.resource)
	default:
		taken[constructor] = true
		return nil
	}
}

// function makes a function, and returns how many parts its types have.
func (r *resolver) function(scope *typeScope, tree *funcTree) (*Func, int, error) {
	f := &Func{Name: tree.name, Interface: scope.iface, Doc: tree.doc}
	taken := names{}
	total := cost{parts: 1}
	if tree.form != formFree {
		e := scope.entities[tree.resource]
		if e.excluded != "" {
			return nil, 0, tree.at.errorf("the function is always there and its resource `%s` only with the feature `%s`; put `@unstable(feature = %[2]s)` before the function too", tree.resource, e.excluded)
		}
		f.Resource = e.resource
	}
	switch tree.form {
	case formFree:
	case formMethod:
		f.Name = "[method]" + tree.resource + "." + tree.name
		f.Params = []Field{{Name: "self", Type: &Type{Kind: KindBorrow, Resource: f.Resource}}}
		taken["self"] = true
	case formStatic:
		f.Name = "[static]" + tree.resource + "." + tree.name
	case formConstructor:
		f.Name = "[constructor]" + tree.resource
		f.Result = &Type{Kind: KindOwn, Resource: f.Resource}
	}
	for _, p := range tree.params {
		if err := taken.add(p.ident); err != nil {
			return nil, 0, err
		}
		t, err := r.resolveType(scope, p.typ)
		if err != nil {
			return nil, 0, err
		}
		f.Params = append(f.Params, Field{p.name, t, p.doc})
		total.add(r.costs[t])
	}
	if tree.result != nil {
		t, err := r.resolveType(scope, tree.result)
		if err != nil {
			return nil, 0, err
		}
		if r.costs[t].borrow {
			return nil, 0, tree.result.at.errorf("a result cannot contain a borrow")
		}
		if tree.form == formConstructor && (t.Kind != KindResult || t.Ok == nil || t.Ok.Kind != KindOwn || t.Ok.Resource != f.Resource) {
			return nil, 0, tree.result.at.errorf("a constructor returns nothing here or `result<%s, ...>`", tree.resource)
		}
		f.Result = t
		total.add(r.costs[t])
	}
	total.depth = 0
	return f, total.parts, total.check(tree.at)
}
