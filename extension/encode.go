package extension

import (
	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
)

// Canonical returns the manifest in its canonical form: JSON in the long form without spaces, fields in a fixed order,
// tools, tags and bindings sorted. Manifests with the same canonical form ask for the same authority, however they were written,
// so digests cover this form. It leaves out tests, because they ask for nothing. Parse(Canonical()) returns the rest.
func (m *Manifest) Canonical() []byte {
	bindings := make(map[string]map[string]any, len(m.Bindings))
	for _, b := range m.Bindings {
		bindings[b.Name] = b.document()
	}
	vars := make(map[string]Var, len(m.Vars))
	for _, v := range m.Vars {
		vars[v.Name] = v
	}
	return capability.JSON(struct {
		Name        string                    `json:"name"`
		Version     string                    `json:"version"`
		Description string                    `json:"description"`
		Tools       []string                  `json:"tools"`
		Tags        []string                  `json:"tags,omitempty"`
		Bindings    map[string]map[string]any `json:"bindings"`
		WASI        abi.WASI                  `json:"wasi,omitzero"`
		FS          string                    `json:"fs,omitempty"`
		Vars        map[string]Var            `json:"vars,omitempty"`
		Durable     map[string]Durable        `json:"durable,omitempty"`
		Needs       map[string]string         `json:"dependencies,omitempty"`
	}{m.Name, m.Version, m.Description, m.Tools, m.Tags, bindings, m.WASI, m.FS, vars, durableFields(m.Durable), m.Dependencies})
}

// MarshalJSON implements json.Marshaler with the canonical form.
func (m *Manifest) MarshalJSON() ([]byte, error) { return m.Canonical(), nil }

// MarshalJSON implements json.Marshaler. It writes the value that a manifest has under the binding's name.
func (b Binding) MarshalJSON() ([]byte, error) { return capability.JSON(b.document()), nil }

func (b Binding) document() map[string]any {
	return map[string]any{b.Grant.Kind().Name: b.Grant.Document()}
}
