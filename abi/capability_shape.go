package abi

import "slices"

// capabilityPackage declares the words that every capability interface uses.
var capabilityPackage = packageName{namespace: "stile", name: "capability", version: "0.1.0"}

// ParseCapability is [Parse] for an embedder's capability interfaces, which may leave out the functions that all of them share. If
// an interface outside the packages stile:capability and stile:extension declares a resource but no function `get`, ParseCapability
// adds these functions for its first resource r,
//
//	get: func(env: borrow<env>, name: string) -> result<r, error>;
//	put: func(env: borrow<env>, name: string, handle: r) -> result<_, error>;
//
// with env from stile:capability/env@0.1.0 and error from stile:capability/types@0.1.0, which must be among the texts.
func ParseCapability(texts ...string) (*Resolve, error) {
	return resolve([]group{looseGroup(texts)}, nil, addGetPut)
}

// isOurs reports whether the package is one of Stile's own.
func (n packageName) isOurs() bool {
	return n.namespace == "stile" && (n.name == "capability" || n.name == "extension")
}

// Handle is the resource that a binding of a capability interface hands out: the one that `get` returns, or the first resource of an
// interface without `get`. It is nil if there is no such resource.
func (i *Interface) Handle() *Resource {
	for _, f := range i.Funcs {
		if f.Name != "get" {
			continue
		}
		t := f.Result
		if t != nil && t.Kind == KindResult {
			t = t.Ok
		}
		if t == nil || t.Kind != KindOwn {
			return nil
		}
		return t.Resource
	}
	if len(i.Resources) == 0 {
		return nil
	}
	return i.Resources[0]
}

func addGetPut(r *resolver, i *interfaceScope) error {
	if i.text.pkg.name.isOurs() {
		return nil
	}
	if len(i.out.Resources) == 0 || slices.ContainsFunc(i.out.Funcs, func(f *Func) bool { return f.Name == "get" }) {
		return nil
	}
	for _, name := range []string{"get", "put"} {
		if i.taken[name] {
			return i.tree.at.errorf("the interface `%s` declares `%s` but no function `get`; the name is needed for the function that every capability has", i.tree.name, name)
		}
	}
	env, err := r.capabilityWord(i, "env", "env")
	if err != nil {
		return err
	}
	failure, err := r.capabilityWord(i, "types", "error")
	if err != nil {
		return err
	}
	if env.resource == nil || failure.typ == nil {
		return &SyntaxError{Message: "`env` of stile:capability must be a resource and `error` a type"}
	}
	handle := &Type{Kind: KindOwn, Resource: i.out.Resources[0]}
	binding := []Field{
		{Name: "env", Type: &Type{Kind: KindBorrow, Resource: env.resource}},
		{Name: "name", Type: &Type{Kind: KindString}},
	}
	i.out.Funcs = append(i.out.Funcs,
		&Func{
			Name: "get", Interface: i.out, Params: binding,
			Result: &Type{Kind: KindResult, Ok: handle, Err: failure.typ},
		},
		&Func{
			Name: "put", Interface: i.out, Params: append(binding[:2:2], Field{Name: "handle", Type: handle}),
			Result: &Type{Kind: KindResult, Err: failure.typ},
		})
	return nil
}

// capabilityWord finds a name of an interface of stile:capability, which i then uses.
func (r *resolver) capabilityWord(i *interfaceScope, iface, name string) (*entity, error) {
	whole := capabilityPackage.member(iface)
	pkg := r.packages[capabilityPackage]
	if pkg == nil || pkg.items[iface].iface == nil {
		return nil, &SyntaxError{Message: "the interface " + whole + " is not among the texts"}
	}
	from := pkg.items[iface].iface
	if err := r.resolveInterface(from, i.tree.at); err != nil {
		return nil, err
	}
	e := from.entities[name]
	if e == nil {
		return nil, &SyntaxError{Message: "the interface " + whole + " does not declare `" + name + "`"}
	}
	if !slices.Contains(i.uses, from) {
		i.uses = append(i.uses, from)
	}
	return e, nil
}
