package extension

import "github.com/stilehost/stile/internal/jsonform"

// Places finds the parts of a manifest in its text.
type Places struct {
	reader  *jsonform.Reader
	offsets map[string]int
}

// PlacesIn reads the text of a manifest. Of what is not JSON, it has no places.
func PlacesIn(text []byte) *Places {
	p := &Places{jsonform.New("manifest", text), map[string]int{}}
	root := p.reader.Parse()
	if root == nil {
		return p
	}
	fields, _ := root.Value.([]jsonform.Member)
	for _, f := range fields {
		p.offsets[f.Key] = f.Offset
		switch below := f.Value.Value.(type) {
		case []jsonform.Member:
			for _, m := range below {
				p.offsets[m.Value.Path()] = m.Offset
			}
		case []*jsonform.Node:
			for _, item := range below {
				if word, ok := item.Value.(string); ok {
					p.offsets[f.Key+" "+word] = item.Offset
				}
			}
		}
	}
	return p
}

// Of returns the line and the column of the first of some parts that is there, counted from 1, or zeros. A part is a field ("name"), a field
// below one ("bindings.notes"), or a text in a list ("tools add").
func (p *Places) Of(parts ...string) (line, column int) {
	for _, part := range parts {
		if offset, ok := p.offsets[part]; ok {
			return p.reader.Place(offset)
		}
	}
	return 0, 0
}

// OfBinding is Of for a binding, in the long form or the short one.
func (p *Places) OfBinding(name string) (line, column int) {
	return p.Of(jsonform.Join("bindings", name), jsonform.Join("permissions", name), "bindings")
}
