package extension

import (
	"fmt"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/npmspec"
)

const maxDependencies = 100

func (r *reader) dependencies(n *jsonform.Node) map[string]string {
	const example = `{"zod": "^4.0.0"}`
	members := r.Members(n, example)
	if len(members) > maxDependencies {
		r.Fail(n, fmt.Sprintf("at most %d", maxDependencies), "there are %d dependencies", len(members))
		return nil
	}
	if len(members) == 0 {
		return nil
	}
	found := make(map[string]string, len(members))
	for _, m := range members {
		if problem := npmspec.NameProblem(m.Key); problem != "" {
			r.FailAt(m.Offset, m.Value.Path(), `the name of an npm package, like "zod" or "@scope/name"`, "%s %s", jsonform.Quote(m.Key), problem)
		}
		met := r.Met
		spec := r.versionRange(m.Value)
		if r.Next(); r.Met == met {
			found[m.Key] = spec
		}
	}
	return found
}

func (r *reader) versionRange(n *jsonform.Node) string {
	const example = `a range of versions, like "^1.2.3"`
	s := r.Text(n, example)
	if r.Err != nil {
		return s
	}
	if problem := npmspec.RangeProblem(s); problem != "" {
		r.Fail(n, example, "%s %s", jsonform.Quote(s), problem)
	}
	return s
}
