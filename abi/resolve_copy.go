package abi

import "strings"

// copier copies the declarations of a world or an interface under other names.
type copier struct {
	// home declares the originals, and to declares the copies. Both are nil for a world.
	home, to *Interface
	names    map[string]string
	// deep is set if types and resources of home are copied. Otherwise they are shared.
	deep      bool
	types     map[*Type]*Type
	resources map[*Resource]*Resource
	// copied counts the copies.
	copied int
}

func newCopier(home, to *Interface) *copier {
	return &copier{home: home, to: to, names: map[string]string{}, types: map[*Type]*Type{}, resources: map[*Resource]*Resource{}}
}

// name returns the new name of an item.
func (c *copier) name(name string) string {
	if as, ok := c.names[name]; ok {
		return as
	}
	return name
}

func (c *copier) resource(r *Resource) *Resource {
	if !c.deep || r == nil || r.Interface != c.home {
		return r
	}
	if c.resources[r] == nil {
		c.copied++
		c.resources[r] = &Resource{Name: c.name(r.Name), Interface: c.to, Doc: r.Doc}
	}
	return c.resources[r]
}

func (c *copier) typ(t *Type) *Type {
	if !c.deep || t == nil || t.Name != "" && t.Interface != c.home {
		return t
	}
	if done := c.types[t]; done != nil {
		return done
	}
	made := *t
	c.types[t] = &made
	c.copied += 1 + len(t.Fields) + len(t.Cases)
	if t.Name != "" {
		made.Name, made.Interface = c.name(t.Name), c.to
	}
	made.Elem, made.Ok, made.Err, made.Resource = c.typ(t.Elem), c.typ(t.Ok), c.typ(t.Err), c.resource(t.Resource)
	made.Fields = c.fields(t.Fields)
	if t.Cases != nil {
		made.Cases = make([]Case, len(t.Cases))
		for i, k := range t.Cases {
			made.Cases[i] = Case{k.Name, c.typ(k.Type), k.Doc}
		}
	}
	return &made
}

func (c *copier) fields(fields []Field) []Field {
	if fields == nil {
		return nil
	}
	made := make([]Field, len(fields))
	for i, f := range fields {
		made[i] = Field{f.Name, c.typ(f.Type), f.Doc}
	}
	return made
}

func (c *copier) function(f *Func) *Func {
	if !c.deep && c.name(f.Name) == f.Name {
		return f
	}
	made := *f
	c.copied += 1 + len(f.Params)
	made.Interface, made.Params, made.Result = c.to, c.fields(f.Params), c.typ(f.Result)
	if f.Resource == nil {
		made.Name = c.name(f.Name)
		return &made
	}
	made.Resource = c.resource(f.Resource)
	form, _, _ := strings.Cut(f.Name, "]")
	made.Name = form + "]" + made.Resource.Name
	if _, name, found := strings.Cut(f.Name, "."); found {
		made.Name += "." + name
	}
	return &made
}

// inline copies an interface that a world declares if it gets another name.
func (c *copier) inline(i *interfaceScope) *interfaceScope {
	name := c.name(i.out.Name)
	if name == i.out.Name {
		return i
	}
	made := *i
	made.out = &Interface{Name: name, Doc: i.out.Doc}
	inner := newCopier(i.out, made.out)
	inner.deep = true
	for _, r := range i.out.Resources {
		made.out.Resources = append(made.out.Resources, inner.resource(r))
	}
	for _, t := range i.out.Types {
		made.out.Types = append(made.out.Types, inner.typ(t))
	}
	for _, f := range i.out.Funcs {
		made.out.Funcs = append(made.out.Funcs, inner.function(f))
	}
	c.copied += inner.copied
	return &made
}
