package npm

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/usagetest"
)

// TestReadAnswers reads what npm 10 and 11 write, and what no npm writes.
func TestReadAnswers(t *testing.T) {
	version := func(v string) string {
		return `{"version":"` + v + `","time":{"0.9.0":"no","` + v + `":"2020-01-01T00:00:00Z"},"dist":{"shasum":"x","attestations":{"url":"u","provenance":[{}]},` +
			`"tarball":"https://r/` + v + `","integrity":"sha512-` + v + `","signatures":[{"keyid":"k","sig":"s","more":1},{"keyid":"l","sig":"t"}]}}`
	}
	one := `{"version":"1.0.0","dist":{"tarball":"https://r/1.0.0","signatures":{"sig":"s","keyid":"k"}},"time":{"1.0.0":"2020-01-01T00:00:00Z"}}`
	full := "a 1.0.0 2020-01-01T00:00:00Z https://r/1.0.0 sha512-1.0.0 [{k s} {l t}]"
	other := "a 2.0.0 2020-01-01T00:00:00Z https://r/2.0.0 sha512-2.0.0 [{k s} {l t}]"
	short := "a 1.0.0 2020-01-01T00:00:00Z https://r/1.0.0  [{k s}]"
	for name, c := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"npm 10, one": {`{"a":` + one + `}`, []string{short}, ""}, "npm 10": {`{"a":[` + version("1.0.0") + `,` + version("2.0.0") + `]}`, []string{full, other}, ""},
		"npm 11":          {`{"a@=1.0.0||=2.0.0":` + version("1.0.0") + `}`, []string{full}, ""},
		"another version": {`{"a":` + version("3.0.0") + `}`, nil, ""}, "another name": {`{"b":[` + version("1.0.0") + `,` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `]}`, nil, ""},
		"nothing": {`{}`, nil, ""}, "no object": {`[1]`, nil, ""}, "odd": {`{"a":[1,"x",[{}],null,{"dist":1,"time":[],"version":{}},{"version":"1.0.0","dist":{"signatures":["x",{"keyid":7}]}}]}`, []string{"a 1.0.0    [{ } { }]"}, ""},
		"twice": {`{"a":` + one + `,"a":` + version("1.0.0") + `}`, []string{full}, ""}, "a long text": {`{"a":{"version":"1.0.0","dist":{"tarball":"` + strings.Repeat("x", maxKept+1) + `"}}}`, []string{"a 1.0.0    []"}, ""},
		"cut": {`{"a":{"version":"1.0.0"`, nil, "EOF"}, "no JSON": {"npm", nil, "invalid character"}, "empty": {"", nil, "EOF"},
		"deep": {`{"b":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, nil, "nested"}, "a huge text": {`{"b":"` + strings.Repeat("x", 3*maxToken) + `"}`, nil, "a text has more than"},
		"a huge name": {`{"` + strings.Repeat("x", 3*maxToken) + `":1}`, nil, "a text has more than"}, "much space": {`{"a":` + strings.Repeat(" ", 3*maxToken) + one + `}`, nil, "a text has more than"},
		"many signatures": {`{"a":{"version":"1.0.0","dist":{"signatures":[` + strings.Repeat("{},", 1000) + `{}]}}}`, []string{"a 1.0.0    [" + strings.TrimSpace(strings.Repeat("{ } ", maxSignatures)) + "]"}, ""},
	} {
		all, err := readAnswers(strings.NewReader(c.text), []string{"a"}, []string{"1.0.0", "2.0.0"}, "@=1.0.0||=2.0.0")
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		var got []string
		for _, v := range slices.Sorted(maps.Keys(all["a"])) {
			m := all["a"][v]
			got = append(got, fmt.Sprint("a ", v, " ", m.Published, " ", m.Tarball, " ", m.Integrity, " ", m.Signatures))
		}
		if err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestAnswersTakeLittle reads 8 MiB of what a registry can make npm write, in a process of its own for each kind, and looks how much memory
// that one ever had above what it had before.
func TestAnswersTakeLittle(t *testing.T) {
	kinds := map[string]string{
		"times": `"1.0.0":"2020",`, "versions": `"a":{"version":"1.0.0","time":{"1.0.0":"x"}},`, "lists": `"a":[[[[[]]]]],`,
	}
	if name := os.Getenv("STILE_TEST_ANSWERS"); name != "" {
		usagetest.Tell(t, func() {
			if _, err := readAnswers(endless(name, kinds[name]), []string{"a"}, []string{"1.0.0"}, ""); err == nil {
				t.Error("it has an end")
			}
		})
		return
	}
	t.Parallel()
	for name := range kinds {
		kib, out, err := usagetest.Grown(t, "TestAnswersTakeLittle", "STILE_TEST_ANSWERS="+name)
		if err != nil || kib > 16<<10 {
			t.Errorf("%s: %d KiB, %v\n%s", name, kib, err, out)
		}
		t.Logf("%s: %d KiB", name, kib)
	}
}

// endless is an answer that goes on for 8 MiB.
func endless(name, item string) io.Reader {
	begin := `{"a":{"version":"1.0.0",`
	switch name {
	case "times":
		begin += `"time":{`
	case "versions", "lists":
		begin = "{"
	}
	many := strings.Repeat(item, 64<<10/len(item))
	parts := []io.Reader{strings.NewReader(begin)}
	for range maxOutput / 8 / len(many) {
		parts = append(parts, strings.NewReader(many))
	}
	return io.MultiReader(parts...)
}
