package sandbox

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// TestDouble runs commands that a test answers.
func TestDouble(t *testing.T) {
	missing := ""
	test := &double.Test{Path: "tests[0].env.box", Binding: "box", Missing: func(_, _, line string) { missing = line }}
	c, err := Rights{Image: "host"}.Double(t.Context(), test, json.RawMessage(`{"npm test": {"exitCode": 1, "stdout": "out", "stderr": "err", "files": {"a/b": "new"}}, "git status": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := c.(abi.Opener).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	box := opened.(doubled)
	defer func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := box.Start(t.Context(), Command{Argv: []string{"/bin/sh", "-c", "npm test"}})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Subscribe(t.Context(), Stage{Case: StageEnded}).IsReady() {
		t.Error("the command has not ended when it is started")
	}
	e, err := p.Take(t.Context())
	first, second := p.output.read(0), p.output.read(3)
	if err != nil || e.Code != 1 || string(first.Bytes) != "out" || string(second.Bytes) != "err" || second.Stream != 1 {
		t.Errorf("%+v, %v, %+v, %+v", e, err, first, second)
	}
	p, err = box.Start(t.Context(), Command{Argv: []string{"git", "status"}})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Take(t.Context()); err != nil || e.Code != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	p, err = box.Start(t.Context(), Command{Argv: []string{"make"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take(t.Context()); !errors.Is(err, abi.ErrUnavailable) || !strings.HasPrefix(missing, `"make": {`) {
		t.Errorf("%v, %s", err, missing)
	}
	for _, answers := range []string{`null`, `{"a": null}`, `{"a": {"code": 1}}`, `{"a": {"exitCode": 256}}`, `{"a": {"files": {"../x": "y"}}}`, `[]`} {
		if _, err := (Rights{}).Double(t.Context(), test, json.RawMessage(answers)); err == nil {
			t.Errorf("%s is accepted", answers)
		}
	}
}

// TestLearn makes answers of recorded commands.
func TestLearn(t *testing.T) {
	start := func(argv ...abi.Value) double.Operation {
		return double.Operation{Method: "start", Args: []abi.Value{[]abi.Value{argv, "", []abi.Value{}, abi.Variant{}, abi.Variant{}}}}
	}
	part := func(at uint64, stream uint32, text string) double.Operation {
		return double.Operation{Method: "read", Args: []abi.Value{at}, Value: abi.Variant{Case: 1, Value: []abi.Value{at, abi.Variant{Case: stream}, []byte(text)}}}
	}
	take := double.Operation{Method: "take", Value: []abi.Value{uint32(2), abi.Variant{}, uint64(0)}}
	learn := func(operations ...double.Operation) (string, error) {
		r := newRecorded(nil, "box")
		l, err := r.Learn(operations[0])
		for _, o := range operations[1:] {
			if err == nil {
				_, err = l.Learn(o)
			}
		}
		if err != nil {
			return "", err
		}
		answers, err := r.Answers()
		text, _ := json.Marshal(answers)
		return string(text), err
	}
	got, err := learn(start("/bin/sh", "-c", "npm test"), part(0, 0, "out"), part(3, 1, "err"), part(3, 1, "err"), take)
	if err != nil || got != `{"npm test":{"exitCode":2,"stdout":"out","stderr":"err"}}` {
		t.Errorf("%s, %v", got, err)
	}
	for name, operations := range map[string][]double.Operation{
		"no end":        {start("a"), part(0, 0, "x")},
		"missing part":  {start("a"), part(5, 0, "x"), take},
		"a timeout":     {start("a"), {Method: "take", Value: []abi.Value{uint32(137), abi.Variant{Case: 1}, uint64(0)}}},
		"a failure":     {start("a"), {Method: "take", Failed: "unavailable"}},
		"files back":    {{Method: "pull"}, {Method: "take", Value: []abi.Value{[]abi.Value{"a"}, []abi.Value{}, []abi.Value{}, []abi.Value{}, []abi.Value{}, uint32(0)}}},
		"something new": {{Method: "limits"}},
	} {
		if got, err := learn(operations...); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, err := learn(double.Operation{Method: "push"}, double.Operation{Method: "take"}); err != nil {
		t.Error(err)
	}
}
