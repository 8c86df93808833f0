package abi

import "slices"

// externs are the imports or the exports of a world.
type externs struct {
	interfaces []*interfaceScope
	has        map[*interfaceScope]bool
	funcs      []*Func
	// taken are the names in the world. Functions, types and the interfaces that a world declares share them.
	taken names
	// aliases are names in the world for types that it does not declare itself. Worlds that include this one get them too.
	aliases []string
}

// add reports whether i is new.
func (e *externs) add(i *interfaceScope) bool {
	if e.has[i] {
		return false
	}
	e.has[i] = true
	e.interfaces = append(e.interfaces, i)
	return true
}

// take takes a name.
func (e *externs) take(name string, at position) error {
	if len(e.taken) == maxItems {
		return at.errorf("a world has at most %d functions, types and interfaces of its own", maxItems)
	}
	return e.taken.add(ident{name, at})
}

func (e *externs) addFunc(f *Func, at position) error {
	if err := e.take(f.Name, at); err != nil {
		return err
	}
	e.funcs = append(e.funcs, f)
	return nil
}

// addDeep adds i after the interfaces it uses.
func (e *externs) addDeep(i *interfaceScope) {
	if e.has[i] {
		return
	}
	for _, dep := range i.uses {
		e.addDeep(dep)
	}
	e.add(i)
}

func (e *externs) resolved() []*Interface {
	var interfaces []*Interface
	for _, i := range e.interfaces {
		interfaces = append(interfaces, i.out)
	}
	return interfaces
}

// resolveWorld resolves a world that is referred to at a position.
func (r *resolver) resolveWorld(w *worldScope, at position) error {
	switch w.progress {
	case done:
		return nil
	case working:
		return at.errorf("the world `%s` includes itself, directly or through others", w.tree.name)
	case untouched:
	}
	w.progress = working
	if w.excluded != "" {
		w.progress = done
		return nil
	}
	scope := &typeScope{entities: map[string]*entity{}, taken: names{}}
	var used []*interfaceScope
	declared, err := r.body(w.text, scope, &w.tree.bodyTree, &used)
	if err != nil {
		return err
	}
	w.out.Types, w.out.Resources = declared.types, declared.resources
	w.imports = externs{has: map[*interfaceScope]bool{}, taken: scope.taken}
	w.exports = externs{has: map[*interfaceScope]bool{}, taken: names{}}
	w.imports.aliases = w.aliases(scope)
	if err := r.externs(w, scope, &w.imports, w.tree.imports); err != nil {
		return err
	}
	if err := r.externs(w, scope, &w.exports, w.tree.exports); err != nil {
		return err
	}
	for _, f := range declared.funcs {
		if err := w.imports.addFunc(f, w.tree.at); err != nil {
			return err
		}
	}
	for _, include := range w.tree.includes {
		if err := r.include(w, include); err != nil {
			return err
		}
	}
	if err := w.complete(used); err != nil {
		return err
	}
	// Functions of resources come after the others.
	free := func(f *Func) bool { return f.Resource == nil }
	method := func(f *Func) bool { return f.Resource != nil }
	w.out.ImportFuncs = slices.Concat(slices.DeleteFunc(slices.Clone(w.imports.funcs), method), slices.DeleteFunc(slices.Clone(w.imports.funcs), free))
	w.out.ExportFuncs = w.exports.funcs
	w.out.Imports, w.out.Exports = w.imports.resolved(), w.exports.resolved()
	w.progress = done
	r.out.worlds = append(r.out.worlds, w.out)
	return nil
}

// aliases returns the names in a world's own scope that mean types declared elsewhere.
func (w *worldScope) aliases(scope *typeScope) []string {
	var aliases []string
	add := func(id ident) {
		if scope.entities[id.name].excluded == "" {
			aliases = append(aliases, id.name)
		}
	}
	for _, use := range w.tree.uses {
		for _, n := range use.names {
			add(n.as)
		}
	}
	for _, decl := range w.tree.types {
		if decl.alias != nil {
			add(decl.ident)
		}
	}
	return aliases
}

func (r *resolver) externs(w *worldScope, scope *typeScope, to *externs, trees []externTree) error {
	for _, tree := range trees {
		feature, err := r.excludes(w.text.pkg, tree.gate)
		if err != nil {
			return err
		}
		if feature != "" {
			continue
		}
		switch {
		case tree.fn != nil:
			f, _, err := r.function(scope, tree.fn)
			if err != nil {
				return err
			}
			if err := to.addFunc(f, tree.fn.at); err != nil {
				return err
			}
		case tree.inline != nil:
			if err := r.inline(w, to, tree.inline); err != nil {
				return err
			}
		default:
			i, err := r.findInterface(w.text, tree.iface)
			if err != nil {
				return err
			}
			if !to.add(i) {
				return tree.iface.name.at.errorf("the interface `%s` is named twice", tree.iface.name.name)
			}
		}
	}
	return nil
}

// inline resolves an interface that a world declares.
func (r *resolver) inline(w *worldScope, to *externs, tree *interfaceTree) error {
	if err := r.count(tree.ident); err != nil {
		return err
	}
	if err := to.take(tree.name, tree.at); err != nil {
		return err
	}
	i := &interfaceScope{tree: tree, text: w.text, inline: true, out: &Interface{Name: tree.name, Doc: tree.doc}}
	if err := r.resolveInterface(i, tree.at); err != nil {
		return err
	}
	to.add(i)
	return nil
}

// include copies the imports and exports of another world, and renames them if asked to.
func (r *resolver) include(w *worldScope, tree includeTree) error {
	feature, err := r.excludes(w.text.pkg, tree.gate)
	if err != nil || feature != "" {
		return err
	}
	item, err := r.find(w.text, tree.from)
	if err != nil {
		return err
	}
	at := tree.from.name.at
	from := item.world
	if from == nil {
		return at.errorf("`%s` is an interface, not a world", tree.from.name.name)
	}
	if err := r.resolveWorld(from, at); err != nil {
		return err
	}
	r.includedItems += len(from.imports.taken) + len(from.imports.interfaces) + len(from.exports.taken) + len(from.exports.interfaces)
	if r.includedItems > maxIncluded {
		return at.errorf("the worlds include more than %d imports and exports in all", maxIncluded)
	}
	c := newCopier(nil, nil)
	taken := map[string]bool{}
	for _, n := range tree.names {
		if taken[n.name.name] {
			return n.name.at.errorf("the name `%s` is already taken: it is before `as` twice", n.name.name)
		}
		taken[n.name.name] = true
		if !from.rename(c, n.name.name, n.as.name) {
			return n.name.at.errorf("the world %s has no function `%s`, and no type or interface of its own with that name", from.out.Name, n.name.name)
		}
	}
	for _, name := range from.imports.aliases {
		name = c.name(name)
		if err := w.imports.take(name, at); err != nil {
			return err
		}
		w.imports.aliases = append(w.imports.aliases, name)
	}
	for _, res := range from.out.Resources {
		res = c.resource(res)
		if err := w.imports.take(res.Name, at); err != nil {
			return err
		}
		w.out.Resources = append(w.out.Resources, res)
	}
	for _, t := range from.out.Types {
		t = c.typ(t)
		if err := w.imports.take(t.Name, at); err != nil {
			return err
		}
		w.out.Types = append(w.out.Types, t)
	}
	if err := w.imports.include(&from.imports, c, at); err != nil {
		return err
	}
	if err := w.exports.include(&from.exports, c, at); err != nil {
		return err
	}
	if r.copied += c.copied; r.copied > maxIncluded {
		return at.errorf("`include ... with` copies more than %d types and functions in all", maxIncluded)
	}
	return nil
}

// rename makes c give another name to a function, type or interface of the world. It reports whether there is one.
func (w *worldScope) rename(c *copier, name, as string) bool {
	c.names[name] = as
	declared := slices.ContainsFunc(w.out.Types, func(t *Type) bool { return t.Name == name }) ||
		slices.ContainsFunc(w.out.Resources, func(r *Resource) bool { return r.Name == name })
	c.deep = c.deep || declared
	return declared || slices.Contains(w.imports.aliases, name) || w.imports.named(name) || w.exports.named(name)
}

// named reports whether the world itself has a function or an interface of that name.
func (e *externs) named(name string) bool {
	return slices.ContainsFunc(e.funcs, func(f *Func) bool { return f.Name == name }) ||
		slices.ContainsFunc(e.interfaces, func(i *interfaceScope) bool { return i.inline && i.out.Name == name })
}

func (e *externs) include(from *externs, c *copier, at position) error {
	for _, i := range from.interfaces {
		if i.inline {
			i = c.inline(i)
			if err := e.take(i.out.Name, at); err != nil {
				return err
			}
		}
		e.add(i)
	}
	for _, f := range from.funcs {
		if err := e.addFunc(c.function(f), at); err != nil {
			return err
		}
	}
	return nil
}

// complete adds the interfaces that imports and exports need for their types, and puts each interface after those it uses. An
// interface that an export uses is an export if the world names it as one, and an import otherwise.
func (w *worldScope) complete(used []*interfaceScope) error {
	imports := externs{has: map[*interfaceScope]bool{}}
	exports := externs{has: map[*interfaceScope]bool{}}
	needed := externs{has: map[*interfaceScope]bool{}}
	for _, i := range slices.Concat(w.imports.interfaces, used) {
		imports.addDeep(i)
	}
	var export func(*interfaceScope)
	export = func(i *interfaceScope) {
		switch {
		case !w.exports.has[i]:
			needed.addDeep(i)
		case !exports.has[i]:
			for _, dep := range i.uses {
				export(dep)
			}
			exports.add(i)
		}
	}
	for _, i := range w.exports.interfaces {
		export(i)
	}
	for _, i := range needed.interfaces {
		if w.exports.has[i] {
			return w.tree.at.errorf("the world exports `%s`, and an interface that needs it as an import; export what lies between them too", i.tree.name)
		}
		imports.addDeep(i)
	}
	w.imports.interfaces, w.imports.has = imports.interfaces, imports.has
	w.exports.interfaces, w.exports.has = exports.interfaces, exports.has
	return nil
}
