package abi

import "slices"

// externs are the imports or the exports of a world.
type externs struct {
	interfaces []*interfaceScope
	has        map[*interfaceScope]bool
	funcs      []*Func
	taken      names
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

func (e *externs) addFunc(f *Func, at position) error {
	if err := e.taken.add(ident{f.Name, at}); err != nil {
		return err
	}
	if len(e.funcs) == maxItems {
		return at.errorf("a world has at most %d functions", maxItems)
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

// resolveWorld resolves a world that is needed at a position.
func (r *resolver) resolveWorld(w *worldScope, at position) error {
	switch w.progress {
	case done:
		return nil
	case working:
		return at.errorf("the world `%s` includes itself, directly or through others", w.tree.name)
	case untouched:
	}
	w.progress = working
	scope := &typeScope{entities: map[string]*entity{}, taken: names{}}
	var used []*interfaceScope
	for _, use := range w.tree.uses {
		if err := r.use(w.text, scope, &used, use); err != nil {
			return err
		}
	}
	w.imports = externs{has: map[*interfaceScope]bool{}, taken: scope.taken}
	w.exports = externs{has: map[*interfaceScope]bool{}, taken: names{}}
	if err := r.externs(w, scope, &w.imports, w.tree.imports); err != nil {
		return err
	}
	if err := r.externs(w, scope, &w.exports, w.tree.exports); err != nil {
		return err
	}
	for _, include := range w.tree.includes {
		if err := r.include(w, include); err != nil {
			return err
		}
	}
	if err := w.complete(used); err != nil {
		return err
	}
	w.out.ImportFuncs, w.out.ExportFuncs = w.imports.funcs, w.exports.funcs
	w.out.Imports, w.out.Exports = w.imports.resolved(), w.exports.resolved()
	w.progress = done
	r.out.worlds = append(r.out.worlds, w.out)
	return nil
}

func (r *resolver) externs(w *worldScope, scope *typeScope, to *externs, trees []externTree) error {
	for _, tree := range trees {
		if tree.fn != nil {
			f, _, err := r.function(scope, tree.fn)
			if err != nil {
				return err
			}
			if err := to.addFunc(f, tree.fn.at); err != nil {
				return err
			}
			continue
		}
		i, err := r.findInterface(w.text, tree.iface)
		if err != nil {
			return err
		}
		if !to.add(i) {
			return tree.iface.name.at.errorf("the interface `%s` is named twice", tree.iface.name.name)
		}
	}
	return nil
}

// include copies what another world imports and exports, with functions renamed.
func (r *resolver) include(w *worldScope, tree includeTree) error {
	item, err := r.find(w.text, tree.from)
	if err != nil {
		return err
	}
	at := tree.from.name.at
	if item.world == nil {
		return at.errorf("`%s` is an interface, not a world", tree.from.name.name)
	}
	if err := r.resolveWorld(item.world, at); err != nil {
		return err
	}
	renames := map[string]string{}
	taken := names{}
	for _, n := range tree.names {
		if err := taken.add(n.name); err != nil {
			return err
		}
		named := func(f *Func) bool { return f.Name == n.name.name }
		if !slices.ContainsFunc(item.world.imports.funcs, named) && !slices.ContainsFunc(item.world.exports.funcs, named) {
			return n.name.at.errorf("the world %s has no function `%s`", item.world.out.Name, n.name.name)
		}
		renames[n.name.name] = n.as.name
	}
	if err := w.imports.include(&item.world.imports, renames, at); err != nil {
		return err
	}
	return w.exports.include(&item.world.exports, renames, at)
}

func (e *externs) include(from *externs, renames map[string]string, at position) error {
	for _, i := range from.interfaces {
		e.add(i)
	}
	for _, f := range from.funcs {
		if name, ok := renames[f.Name]; ok {
			renamed := *f
			renamed.Name = name
			f = &renamed
		}
		if err := e.addFunc(f, at); err != nil {
			return err
		}
	}
	return nil
}

// complete adds the interfaces that imports and exports need for their types, and puts each interface after those it
// uses. What an export uses is an export if the world names it as one, and an import otherwise.
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
