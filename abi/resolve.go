package abi

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Resolve is what a set of WIT texts declares, with every name resolved. It is immutable and safe for concurrent use.
type Resolve struct {
	interfaces []*Interface
	worlds     []*World
}

// Parse reads WIT texts, each of one package or several, in any order; a package may be spread over texts. Every
// name that a text uses must be declared in one of them. The error is a [*SyntaxError].
//
// Refused are texts that are not valid WIT 0.2, `future`, `stream`, `map`, `error-context`, `async` functions, lists of
// fixed length, named results, types and interfaces declared inside a world, and texts beyond generous limits (1 MiB,
// types nested 100 deep, 1,000 interfaces and worlds). Gates such as `@since` are read and ignored.
func Parse(texts ...string) (*Resolve, error) {
	return resolve(texts, nil)
}

// Interface finds an interface by its whole name, e.g. "stile:capability/kv@0.1.0"; nil if there is none.
func (r *Resolve) Interface(name string) *Interface {
	for _, i := range r.interfaces {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// World finds a world by its whole name, e.g. "stile:extension/extension@0.1.0"; nil if there is none.
func (r *Resolve) World(name string) *World {
	for _, w := range r.worlds {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// Interfaces lists all interfaces, each after those it uses.
func (r *Resolve) Interfaces() []*Interface { return slices.Clone(r.interfaces) }

// Worlds lists all worlds, each after those it includes. Their imports contain, before an interface, those that it uses.
func (r *Resolve) Worlds() []*World { return slices.Clone(r.worlds) }

func (n packageName) String() string { return n.member("") }

// member is the whole name of an interface or world of the package.
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

type resolver struct {
	packages map[packageName]*packageScope
	costs    map[*Type]cost
	// shape may add functions to an interface once its own are there.
	shape func(*resolver, *interfaceScope) error
	items int
	out   *Resolve
}

// packageScope holds the interfaces and worlds of one package, by name.
type packageScope struct {
	name  packageName
	items map[string]packageItem
	taken names
}

// packageItem is an interface or a world.
type packageItem struct {
	iface *interfaceScope
	world *worldScope
}

// textScope is where one text looks up interfaces and worlds.
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
	uses     []*interfaceScope
	typeScope
	parts int
}

type worldScope struct {
	tree     *worldTree
	text     *textScope
	out      *World
	progress progress
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
}

// names are the names taken in one scope. WIT compares them without case.
type names map[string]bool

func (n names) add(id ident) error {
	folded := strings.ToLower(id.name)
	if n[folded] {
		return id.at.errorf("the name `%s` is already taken", id.name)
	}
	n[folded] = true
	return nil
}

// cost bounds the work that a type can cause.
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

func resolve(texts []string, shape func(*resolver, *interfaceScope) error) (*Resolve, error) {
	r := &resolver{
		packages: map[packageName]*packageScope{},
		costs:    map[*Type]cost{},
		shape:    shape,
		out:      &Resolve{},
	}
	var interfaces []*interfaceScope
	var worlds []*worldScope
	for i, text := range texts {
		packages, err := parseText(&source{i, text})
		if err != nil {
			return nil, err
		}
		for _, tree := range packages {
			text, err := r.open(tree)
			if err != nil {
				return nil, err
			}
			for _, t := range tree.interfaces {
				scope := &interfaceScope{tree: t, text: text, out: &Interface{Name: tree.name.member(t.name), Doc: t.doc}}
				interfaces = append(interfaces, scope)
				if err := r.declare(text.pkg, t.ident, packageItem{iface: scope}); err != nil {
					return nil, err
				}
			}
			for _, t := range tree.worlds {
				scope := &worldScope{tree: t, text: text, out: &World{Name: tree.name.member(t.name), Doc: t.doc}}
				worlds = append(worlds, scope)
				if err := r.declare(text.pkg, t.ident, packageItem{world: scope}); err != nil {
					return nil, err
				}
			}
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
	return r.out, nil
}

// open makes the scope of one package in one text.
func (r *resolver) open(tree *packageTree) (*textScope, error) {
	pkg := r.packages[tree.name]
	if pkg == nil {
		pkg = &packageScope{name: tree.name, items: map[string]packageItem{}, taken: names{}}
		r.packages[tree.name] = pkg
	}
	text := &textScope{pkg: pkg, aliases: map[string]path{}}
	taken := names{}
	for _, a := range tree.aliases {
		if err := taken.add(a.as); err != nil {
			return nil, err
		}
		text.aliases[a.as.name] = a.target
	}
	return text, nil
}

func (r *resolver) declare(pkg *packageScope, id ident, item packageItem) error {
	if r.items++; r.items > maxItems {
		return id.at.errorf("the texts declare more than %d interfaces and worlds", maxItems)
	}
	if err := pkg.taken.add(id); err != nil {
		return err
	}
	pkg.items[id.name] = item
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
	return item, nil
}

// noPackage names the versions that there are, since a wrong version is the usual mistake.
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

// resolveInterface resolves an interface that is needed at a position.
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
	for _, use := range i.tree.uses {
		if err := r.use(i.text, &i.typeScope, &i.uses, use); err != nil {
			return err
		}
	}
	for _, decl := range i.tree.types {
		e := &entity{decl: decl}
		if decl.resource {
			e.progress = done
			e.resource = &Resource{Name: decl.name, Interface: i.out, Doc: decl.doc}
			i.out.Resources = append(i.out.Resources, e.resource)
		}
		if err := i.declare(decl.ident, e); err != nil {
			return err
		}
	}
	for _, decl := range i.tree.types {
		e := i.entities[decl.name]
		if err := r.resolveEntity(&i.typeScope, e); err != nil {
			return err
		}
		if decl.kind != 0 {
			i.out.Types = append(i.out.Types, e.typ)
			i.parts += r.costs[e.typ].parts
		}
	}
	members := map[string]names{}
	for _, tree := range i.tree.funcs {
		if err := r.interfaceFunc(i, tree, members); err != nil {
			return err
		}
	}
	if r.shape != nil {
		if err := r.shape(r, i); err != nil {
			return err
		}
	}
	if i.parts > maxInterfaceParts {
		return i.tree.at.errorf("the interface `%s` has more than %d fields, cases and types, with named types written out", i.tree.name, maxInterfaceParts)
	}
	i.progress = done
	r.out.interfaces = append(r.out.interfaces, i.out)
	return nil
}

// use brings names of another interface into scope, and adds that interface to deps.
func (r *resolver) use(text *textScope, scope *typeScope, deps *[]*interfaceScope, use useTree) error {
	from, err := r.findInterface(text, use.from)
	if err != nil {
		return err
	}
	if err := r.resolveInterface(from, use.from.name.at); err != nil {
		return err
	}
	for _, n := range use.names {
		e := from.entities[n.name.name]
		if e == nil {
			return n.name.at.errorf("there is no type or resource `%s` in the interface %s", n.name.name, from.out.Name)
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
	if e == nil {
		return nil, id.at.errorf("there is no type or resource `%s` here", id.name)
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

// setElem puts an inner type where the kind of t keeps it.
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

// interfaceFunc adds a function to an interface. Members are the names taken in each resource.
func (r *resolver) interfaceFunc(i *interfaceScope, tree *funcTree, members map[string]names) error {
	if tree.form == formFree {
		if err := i.taken.add(tree.ident); err != nil {
			return err
		}
	} else {
		taken := members[tree.resource]
		if taken == nil {
			taken = names{}
			members[tree.resource] = taken
		}
		key := tree.ident
		if tree.form == formConstructor {
			key.name = "[constructor]" // a method may be called %constructor
		} else if strings.EqualFold(key.name, tree.resource) {
			return key.at.errorf("the resource `%s` cannot have a method of its own name", tree.resource)
		}
		if err := taken.add(key); err != nil {
			return err
		}
	}
	f, parts, err := r.function(&i.typeScope, tree)
	if err != nil {
		return err
	}
	i.parts += parts
	i.out.Funcs = append(i.out.Funcs, f)
	return nil
}

// function makes a function, and says how many parts its types have.
func (r *resolver) function(scope *typeScope, tree *funcTree) (*Func, int, error) {
	f := &Func{Name: tree.name, Interface: scope.iface, Doc: tree.doc}
	taken := names{}
	total := cost{parts: 1}
	if tree.form != formFree {
		f.Resource = scope.entities[tree.resource].resource
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
