package code

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
)

// parsed reads a grant of a manifest.
func parsed(text string) (capability.Grant, error) {
	r := jsonform.New("grant", []byte(text))
	n := r.Parse()
	if r.Err != nil {
		return nil, errors.New(r.Err.Problem())
	}
	g := Kind.Parse(r, n)
	if r.Err != nil {
		return nil, errors.New(r.Err.Problem())
	}
	return g, nil
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Rights{
		`{}`:                         {},
		`{"env": ["b", "a"]}`:        {Env: []string{"a", "b"}},
		`{"runs": 1, "seconds": 2}`:  {Limits: Limits{Runs: 1, CPU: 2 * time.Second}},
		`{"megabytes": 4096}`:        {Limits: Limits{Memory: 4 << 30}},
		`{"bytes": 1048576}`:         {Limits: Limits{Bytes: 1 << 20}},
		`{"env": ["a"], "bytes": 1}`: {Env: []string{"a"}, Limits: Limits{Bytes: 1}},
	} {
		got, err := parsed(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
			continue
		}
		if again, err := parsed(string(capability.JSON(got.Document()))); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: its document is read as %+v, %v", text, again, err)
		}
	}
	for text, want := range map[string]string{
		`true`:                  "where an object belongs",
		`{"env": []}`:           "empty",
		`{"env": "a"}`:          "where a list belongs",
		`{"env": ["a", "a"]}`:   "twice",
		`{"env": ["a.b"]}`:      "cannot name a binding",
		`{"env": [1]}`:          "where text belongs",
		`{"runs": 0}`:           "no number of runs",
		`{"runs": 1.5}`:         "no number of runs",
		`{"runs": "1"}`:         "where a number belongs",
		`{"seconds": 601}`:      "no number of seconds",
		`{"megabytes": 5000}`:   "no number of megabytes",
		`{"bytes": 1048577}`:    "no number of bytes",
		`{"bytes": 1e400}`:      "no number of bytes",
		`{"time": 1}`:           "there is no such field",
		`{"env": ["a"], "": 1}`: "there is no such field",
	} {
		if got, err := parsed(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseSpec(t *testing.T) {
	set := capability.NewSet(Kind)
	for text, want := range map[string]string{
		"code":           `{}`,
		"code:notes":     `{"env":["notes"]}`,
		"code:notes+api": `{"env":["api","notes"]}`,
		"code,runs=2":    `{"runs":2}`,
		"code:a,seconds=3,megabytes=16,bytes=100": `{"env":["a"],"seconds":3,"megabytes":16,"bytes":100}`,
	} {
		g, err := set.ParseSpec("runner", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(capability.JSON(g.Document())); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"code:", "code:a+", "code:a+a", "code:A", "code,runs", "code,runs=0", "code,time=1", "code:a,runs=1,,"} {
		g, err := set.ParseSpec("runner", text)
		if mistake := (*capability.MistakeError)(nil); !errors.As(err, &mistake) || mistake.Fix == "" {
			t.Errorf("%s: got %+v, %v", text, g, err)
		}
	}
	g := Rights{Env: []string{"a"}}
	for spec, want := range map[string]string{
		"runner=code:a,runs=2": "runner=code:a+b,runs=2",
		"runner=code":          "runner=code:a+b",
		"runner":               "",
	} {
		if got := g.Remedy(spec, Rights{Env: []string{"a", "b"}}); got != want {
			t.Errorf("the remedy of %s is %q", spec, got)
		}
	}
	if got := g.Remedy("runner=code", Rights{Env: []string{"\x1b"}}); got != "" {
		t.Errorf("the remedy is %q", got)
	}
}

// TestDescribe checks that the person who approves is told whose code runs, and with what.
func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		g    Rights
		want []string
	}{
		{Rights{}, []string{
			"may run code that it gets when it is called, such as a model's. Nobody reviews that code: you approve it here, unseen",
			"that code gets none of the other bindings: it can compute, tell the time and return a result",
			"may run code 100 times a call, each time with 1 s of processor time, 64 MiB of memory (6400 MiB if 100 run at once), 256 KiB of code and input, and 256 KiB of result",
		}},
		{Rights{Env: []string{"api", "notes"}, Limits: Limits{Runs: 1, CPU: 3 * time.Second, Memory: 1 << 20, Bytes: 7}}, []string{
			"may run code that it gets when it is called, such as a model's. Nobody reviews that code: you approve it here, unseen",
			"that code can do everything that these bindings may: api, notes",
			"may run code once a call, each time with 3 s of processor time, 1 MiB of memory, 7 bytes of code and input, and 7 bytes of result",
		}},
	} {
		if got := c.g.Describe(); !slices.Equal(got, c.want) {
			t.Errorf("got %q", got)
		}
	}
	if Kind.Harmless || Kind.Default != nil {
		t.Error("it is granted without a person")
	}
	got := Rights{Env: []string{"api"}}.Authority()
	if want := []string{"code that nobody has reviewed", "code may use api", "code runs 100", "code time 1 s", "code memory 64 MiB", "code bytes 262144"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// rights draws grants.
func rights(t *rapid.T, label string) Rights {
	number := func(name string, most int) int {
		return rapid.SampledFrom([]int{0, 1, 2, most}).Draw(t, label+" "+name)
	}
	env := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, label+" env")
	slices.Sort(env)
	if len(env) == 0 {
		env = nil
	}
	return Rights{env, Limits{
		number("runs", most.Runs), time.Duration(number("seconds", 600)) * time.Second, int64(number("megabytes", 4096)) << 20, int64(number("bytes", int(most.Bytes))),
	}}
}

// TestNarrows checks that a grant covers exactly the grants that are nowhere wider, and that a ceiling leaves nothing that it or the
// grant does not have.
func TestNarrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, other := rights(t, "grant"), rights(t, "other")
		has, wants := g.Limits.withDefaults(), other.Limits.withDefaults()
		want := wants.Runs <= has.Runs && wants.CPU <= has.CPU && wants.Memory <= has.Memory && wants.Bytes <= has.Bytes
		for _, name := range other.Env {
			want = want && slices.Contains(g.Env, name)
		}
		if got := g.Covers(other); got != want {
			t.Fatalf("%+v covers %+v: %t", g, other, got)
		}
		limited := g.Limit([]capability.Grant{capability.Custom{Name: "x"}, other})
		if !capability.Covers(g, limited) || !capability.Covers(other, limited) {
			t.Fatalf("%+v under %+v is %+v", g, other, limited)
		}
		if g.Limit(nil) != nil {
			t.Fatal("a ceiling without code leaves some")
		}
		again, err := parsed(string(capability.JSON(g.Document())))
		if err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%+v is read as %+v, %v", g, again, err)
		}
		var options []string
		for i, n := range []int64{int64(g.Limits.Runs), int64(g.Limits.CPU / time.Second), g.Limits.Memory >> 20, g.Limits.Bytes} {
			if n > 0 {
				options = append(options, fmt.Sprintf(",%s=%d", numbers[i].name, n))
			}
		}
		spec := "code"
		if len(g.Env) > 0 {
			spec += ":" + strings.Join(g.Env, "+")
		}
		if again, err := capability.NewSet(Kind).ParseSpec("x", spec+strings.Join(options, "")); err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%+v is read as %+v, %v", g, again, err)
		}
	})
}
