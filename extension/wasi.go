package extension

import (
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/jsonform"
)

// wasi reads which bindings serve WASI.
func (r *reader) wasi(n *jsonform.Node, all []Binding) (w abi.WASI) {
	const example = `{"filesystem": {"/": "notes"}, "http": "api"}`
	fields := r.Fields(n, example, []string{"filesystem", "http"})
	if r.Err != nil {
		return w
	}
	if n := fields["filesystem"]; n != nil {
		members := r.Members(n, `{"/": "notes"}`)
		if len(members) > abi.MaxMounts {
			r.Fail(n, fmt.Sprintf("at most %d", abi.MaxMounts), "there are files at %d paths", len(members))
			return w
		}
		for _, m := range members {
			if problem := abi.MountProblem(m.Key); problem != "" {
				r.FailAt(m.Offset, m.Value.Path(), `a path like "/" or "/data"`, "%s %s", jsonform.Quote(m.Key), problem)
			}
			if w.Filesystem == nil {
				w.Filesystem = make(map[string]string, len(members))
			}
			w.Filesystem[m.Key] = r.served(m.Value, all, abi.WorkspaceInterface, "notes")
		}
	}
	if n := fields["http"]; n != nil {
		w.HTTP = r.served(n, all, abi.HTTPInterface, "api")
	}
	return w
}

// served reads the name of a binding of an interface.
func (r *reader) served(n *jsonform.Node, all []Binding, iface, example string) string {
	name := r.Text(n, fmt.Sprintf("%q", example))
	if r.Err != nil || r.gaps.May(name) {
		return name
	}
	has := ""
	if i := find(all, name); i >= 0 {
		has = all[i].Grant.Interface()
	}
	if problem := abi.BindingProblem(iface, has); problem != "" {
		r.Fail(n, "the name of a binding of this manifest", "the binding %s %s", jsonform.Quote(name), problem)
	}
	return name
}
