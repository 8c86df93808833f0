package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stilehost/stile/internal/printable"
)

// Exports lists the names of the component's exports, in its order.
func (c *Component) Exports() ([]string, error) {
	done, err := c.users.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	types, err := c.component.Types()
	if err != nil {
		return nil, fmt.Errorf("read exports: %w", err)
	}
	names := make([]string, len(types.Exports))
	for i, x := range types.Exports {
		names[i] = printable.Short(x.Name, kib)
	}
	return names, nil
}

// Sections lists the names of the component's custom sections that begin with "stile:", in byte order.
func (c *Component) Sections() []string { return slices.Sorted(maps.Keys(c.sections)) }
