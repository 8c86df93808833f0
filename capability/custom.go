package capability

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Custom is a manifest's request for an interface without a known kind.
type Custom struct {
	// Name is the full name of the WIT interface, e.g. "acme:crm/contacts@1.0.0".
	Name string
	// Config is the manifest's configuration of it, a JSON object with sorted keys.
	Config json.RawMessage
}

const maxInterface = 256 // bytes of a name

// interfaceName is namespace:package/interface@version, the form of WIT.
var interfaceName = func() *lazyregexp.Regexp {
	const word = `[a-z][a-z0-9]*(-[a-z0-9]+)*`
	return lazyregexp.New(`^` + word + `:` + word + `/` + word + `(@[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)?$`)
}()

// parseCustom reads a field whose name has a ":". ours maps our own interfaces to the names to write instead.
func parseCustom(r *jsonform.Reader, m jsonform.Member, ours []string) Grant {
	switch {
	case len(m.Key) > maxInterface, !interfaceName.MatchString(m.Key):
		r.FailAt(m.Offset, m.Value.Path(), `"acme:crm/contacts@1.0.0"`, "this is not the name of a WIT interface")
	case strings.HasPrefix(m.Key, "stile:"), strings.HasPrefix(m.Key, "wasi:"):
		r.FailAt(m.Offset, m.Value.Path(), "one of "+strings.Join(ours, ", "), "names that begin with stile: or wasi: are reserved")
	}
	r.Members(m.Value, "{}")
	if r.Err != nil {
		return nil
	}
	return Custom{Name: m.Key, Config: JSON(m.Value.Plain())}
}

// Kind implements [Grant].
func (g Custom) Kind() *Kind { return &Kind{Name: g.Name, Interface: g.Name} }

// Interface implements [Grant].
func (g Custom) Interface() string { return g.Name }

// Document implements [Grant].
func (g Custom) Document() any { return g.Config }

// Describe implements [Grant].
func (g Custom) Describe() []string {
	return []string{fmt.Sprintf("may use %s, a capability of the program that embeds the host, with %s", printable.Line(g.Name), printable.Line(string(g.Config)))}
}

// Authority implements [Grant].
func (g Custom) Authority() []string {
	return []string{printable.Line(g.Name + " " + string(g.Config))}
}

// Covers implements [Grant].
func (g Custom) Covers(asked Grant) bool { return Same(g, asked) }
