package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/trial"
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

// A draft is tried without a trace: its tests run, and nothing is kept of it, whether they pass, fail or cannot run.
func TestTry(t *testing.T) {
	m := newHome(t).open()
	tried := func(code, expect string) ([]trial.Result, error) {
		d := draft("answer", code, "")
		d.Manifest = fmt.Appendf(nil, `{"name": "answer", "version": "1.0.0", "description": "d", "tools": ["get"], "tests": [{"tool": "get", "input": {}, "expect": 1}, {"tool": "get", "input": {}, "expect": %s}]}`, expect)
		return m.Try(t.Context(), d)
	}
	for _, c := range []struct {
		code, expect string
		passed       []bool
	}{{"1", "1", []bool{true, true}}, {"1", "2", []bool{true, false}}, {"2", "2", []bool{false, true}}} {
		results, err := tried(c.code, c.expect)
		if err != nil || len(results) != len(c.passed) {
			t.Fatalf("got %+v, %v", results, err)
		}
		for i, r := range results {
			if r.Passed != c.passed[i] || !r.Passed && r.Problem == nil {
				t.Errorf("%s, %s, test %d: got %+v", c.code, c.expect, i, r)
			}
		}
	}
	if results, err := tried("(", "1"); !errors.As(err, new(*extension.ProblemsError)) {
		t.Errorf("code that is none: got %+v, %v", results, err)
	}
	list, err := m.ListAll(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("the store has %+v, %v", list, err)
	}
	entries, err := m.Audit(t.Context(), 10)
	if err != nil || len(entries) != 0 {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}
