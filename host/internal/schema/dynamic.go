package schema

import (
	"fmt"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resource is a document, or a part of one that has an $id. A dynamic reference searches the resources on the path of validation,
// and leads into the outermost one that has an answer.
type resource struct {
	recursive bool                          // $recursiveAnchor is true
	anchors   map[string]*jsonschema.Schema // by $dynamicAnchor
}

// dynamicRefs lists where the dynamic references of a subschema lead if no resource has an answer.
func dynamicRefs(s *jsonschema.Schema) []*jsonschema.Schema {
	list := given(s.RecursiveRef)
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	return list
}

// asks reports whether a dynamic reference searches the resources. Otherwise it is like a $ref.
func asks(ref *jsonschema.DynamicRef) bool {
	return ref != nil && ref.Anchor != "" && ref.Ref.DynamicAnchor == ref.Anchor
}

// resolve gives the nodes their resources, and gives the nodes of dynamic references all their possible targets.
func (s *Schema) resolve(library *jsonschema.Compiler, reached []*jsonschema.Schema) error {
	resources := map[*jsonschema.Schema]*resource{}
	for len(reached) > 0 {
		sub := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		root, err := private(library, reflect.ValueOf(sub).Elem().FieldByName("resource"))
		if err != nil {
			return err
		}
		if resources[root] == nil {
			resources[root] = &resource{root.RecursiveAnchor, map[string]*jsonschema.Schema{}}
			reached = append(reached, s.reach(root)...)
			for anchors := reflect.ValueOf(root).Elem().FieldByName("dynamicAnchors").MapRange(); anchors.Next(); {
				anchor, err := private(library, anchors.Value())
				if err != nil {
					return err
				}
				resources[root].anchors[anchors.Key().String()] = anchor
				reached = append(reached, s.reach(anchor)...)
			}
		}
		s.nodes[sub].resource = resources[root]
	}

	// The search considers the subschemas on the path that come first in their resource.
	recursive, anchors := &node{inPlace: s.entries()}, map[string]*node{}
	for sub := range s.nodes {
		if name := sub.DynamicAnchor; name != "" {
			if anchors[name] == nil {
				anchors[name] = &node{}
			}
			anchors[name].inPlace = append(anchors[name].inPlace, sub)
		}
	}
	for sub, n := range s.nodes {
		switch ref := sub.RecursiveRef; {
		case ref == nil:
		case ref.RecursiveAnchor:
			n.dynamic = append(n.dynamic, recursive)
		default:
			n.dynamic = append(n.dynamic, s.nodes[ref])
		}
		switch ref := sub.DynamicRef; {
		case ref == nil:
		case asks(ref):
			n.dynamic = append(n.dynamic, anchors[ref.Anchor])
		default:
			n.dynamic = append(n.dynamic, s.nodes[ref.Ref])
		}
	}
	return nil
}

// entries lists the subschemas at which validation can enter a resource whose $recursiveAnchor is true. For a $recursiveRef, the
// library takes the outermost of these, where the specification takes the root of its resource.
func (s *Schema) entries() (list []*jsonschema.Schema) {
	for sub, n := range s.nodes {
		if n.resource.recursive && (sub == s.root || sub.RecursiveAnchor || sub.DynamicAnchor != "") {
			list = append(list, sub)
		}
		for _, next := range append(append(below(sub), n.inPlace...), dynamicRefs(sub)...) {
			if to := s.nodes[next].resource; to != n.resource && to.recursive {
				list = append(list, next)
			}
		}
	}
	return list
}

// private returns the subschema in an unexported field of the library.
func private(library *jsonschema.Compiler, field reflect.Value) (*jsonschema.Schema, error) {
	location := field.Elem().FieldByName("Location").String()
	sub, err := library.Compile(location) // returns the subschema that is already compiled
	if err != nil {
		return nil, schemaError(err)
	}
	if reflect.ValueOf(sub).Pointer() != field.Pointer() {
		return nil, fmt.Errorf("%s is compiled twice", location)
	}
	return sub, nil
}

// dynamic lists where the dynamic references of s lead on the path of m, as the library finds it.
func (m *meter) dynamic(s *jsonschema.Schema) []*jsonschema.Schema {
	list := dynamicRefs(s)
	if len(list) == 0 {
		return nil
	}
	m.left -= len(m.scope) // the library looks at each
	if s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor {
		for _, outer := range m.scope {
			if m.nodes[outer].resource.recursive {
				list[0] = outer
				break
			}
		}
	}
	if asks(s.DynamicRef) {
		for _, outer := range m.scope {
			if anchor := m.nodes[outer].resource.anchors[s.DynamicRef.Anchor]; anchor != nil {
				list[len(list)-1] = anchor
				break
			}
		}
	}
	return list
}
