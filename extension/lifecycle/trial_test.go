package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stilehost/stile/extension"
)

// Tests run against any stored version, with the tests of its manifest or others.
func TestTest(t *testing.T) {
	m := newHome(t).open()
	with := func(value string) *Written {
		d := draft("answer", value, "")
		d.Manifest = fmt.Appendf(nil, `{"name": "answer", "version": "1.0.0", "description": "d", "tools": ["get"], "tests": [{"tool": "get", "input": {}, "expect": %s}]}`, value)
		return write(t, m, d)
	}
	before, now := with("1"), with("2")
	for _, c := range []struct {
		digest string
		tests  []extension.Test
		passed []bool
	}{
		{now.Version.Digest, nil, []bool{true}},
		{before.Version.Digest[:10], nil, []bool{true}},
		{before.Version.Digest, []extension.Test{{Tool: "get", Expect: json.RawMessage("2")}, {Tool: "get", Expect: json.RawMessage("1")}}, []bool{false, true}},
	} {
		results, err := m.Test(t.Context(), c.digest, c.tests...)
		if err != nil || len(results) != len(c.passed) {
			t.Fatalf("got %+v, %v", results, err)
		}
		for i, r := range results {
			if r.Passed != c.passed[i] {
				t.Errorf("test %d: got %+v", i, r)
			}
		}
	}
	for name, c := range map[string]struct {
		v       Viewer
		name    string
		version string
		state   State
	}{
		"the active one":       {agent, "answer", now.Version.Digest, Active},
		"the one before":       {agent, "answer", before.Version.Digest[:8], Superseded},
		"of another extension": {agent, "else", before.Version.Digest, ""},
		"of another agent":     {Viewer{User: "tom", Agent: "b"}, "answer", now.Version.Digest, ""},
		"too short":            {agent, "answer", now.Version.Digest[:5], ""},
		"a pattern":            {agent, "answer", "??????", ""},
	} {
		r, err := m.FindVersion(t.Context(), c.v, c.name, c.version)
		if c.state == "" && !errors.As(err, new(*NotFoundError)) || c.state != "" && (err != nil || r.State != c.state) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}
