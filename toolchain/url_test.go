package toolchain_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf16"

	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/suite"
	"github.com/stilehost/stile/toolchain"
)

// urlTools perform the operations that the suites test in URL. A refused URL is null.
const urlTools = `import { extension } from "stile";
const names = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"];
const made = (text: string, base?: string) => {
	try {
		return new URL(text, base);
	} catch {
		return null;
	}
};
const read = (url: any) => url && Object.fromEntries(names.map((name) => [name, String(url[name])]));
export default extension({ tools: {
	parse: { description: "Parses URLs", run: ({ cases }: any) => cases.map(({ input, base }: any) => read(made(input, base ?? undefined))) },
	set: { description: "Sets a part of URLs", run: ({ cases, part }: any) => cases.map(({ href, new_value }: any) => {
		const url = made(href) as any;
		try {
			url[part] = new_value;
		} catch {
			// As it was.
		}
		return read(url);
	}) },
	host: { description: "Reads hosts", run: ({ hosts }: any) => hosts.map((host: string) => {
		const plain = host.replace(/[\0-\x20?#/:\\@]/g, (c) => "%" + c.charCodeAt(0).toString(16).padStart(2, "0"));
		return made("http://" + plain + "/")?.hostname ?? null;
	}) },
} });`

// knownURLFailures are the cases whose result differs from their suite, with the reason.
var knownURLFailures = map[string]string{
	"host \"\u7e71\U000115bf\\u200D.8\u3002\"": "the last part is a number, so the standard of URLs takes the host for an IPv4 address and refuses it",
}

// urlSuite is a component of urlTools, with the failures found in it.
type urlSuite struct {
	component *host.Component
	failed    map[string]string
}

// call runs a tool and decodes its result.
func (s *urlSuite) call(t *testing.T, tool string, input, results any) {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.component.Do(t.Context(), host.Request{Tool: tool, Input: text})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Output, results); err != nil {
		t.Fatal(err)
	}
}

// compare returns 1 if the parts of a URL are as expected.
func (s *urlSuite) compare(name string, got map[string]string, want map[string]any) int {
	for part, text := range want {
		if value, ok := got[part]; !ok || value != text {
			s.failed[name] = fmt.Sprintf("%s is %q, want %q", part, value, text)
			return 0
		}
	}
	return 1
}

// URL follows the standard: it passes the suites in the crates url and idna.
func TestURLSuites(t *testing.T) {
	_, tools := newToolchain(t, host.Options{Limits: host.Limits{CPU: time.Minute, Wall: 10 * time.Minute}})
	c, err := tools.Build(t.Context(), toolchain.Source{FS: fstest.MapFS{"urls.ts": &fstest.MapFile{Data: []byte(urlTools)}}, Entry: "urls.ts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &urlSuite{component: c, failed: map[string]string{}}
	for _, part := range []struct {
		name          string
		run           func(*testing.T) (passed, all int)
		passed, cases int
	}{
		{"urltestdata", s.parse, 819, 819},
		{"setters_tests", s.set, 254, 254},
		{"IdnaTestV2", s.hosts, 6388, 6389},
	} {
		if passed, all := part.run(t); passed != part.passed || all != part.cases {
			t.Errorf("%s: %d of %d pass, want %d of %d", part.name, passed, all, part.passed, part.cases)
		}
	}
	for name, why := range s.failed {
		if knownURLFailures[name] == "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	for name := range knownURLFailures {
		if s.failed[name] == "" {
			t.Errorf("%s passes: take it out of the known failures", name)
		}
	}
}

func (s *urlSuite) parse(t *testing.T) (passed, all int) {
	t.Helper()
	var list []json.RawMessage
	readJSON(t, suite.Crate(t, "url"), "tests/urltestdata.json", &list)
	list = slices.DeleteFunc(list, func(text json.RawMessage) bool { return text[0] == '"' }) // a comment
	var results []map[string]string
	s.call(t, "parse", map[string]any{"cases": list}, &results)
	for i, text := range list {
		var want map[string]any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("parse %q, base %q", want["input"], want["base"])
		delete(want, "input")
		delete(want, "base")
		if want["failure"] != true {
			passed += s.compare(name, results[i], want)
		} else if results[i] == nil {
			passed++
		} else {
			s.failed[name] = fmt.Sprintf("it is %s, want a refusal", results[i]["href"])
		}
	}
	return passed, len(list)
}

func (s *urlSuite) set(t *testing.T) (passed, all int) {
	t.Helper()
	var parts map[string]json.RawMessage
	readJSON(t, suite.Crate(t, "url"), "tests/setters_tests.json", &parts)
	delete(parts, "comment")
	for part, text := range parts {
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		var results []map[string]string
		s.call(t, "set", map[string]any{"cases": list, "part": part}, &results)
		for i, text := range list {
			var want struct {
				Href     string
				Value    string `json:"new_value"`
				Expected map[string]any
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("set %s of %q to %q", part, want.Href, want.Value)
			passed += s.compare(name, results[i], want.Expected)
		}
		all += len(list)
	}
	return passed, all
}

var (
	// forbiddenInHost is the characters that a host cannot have. No other ASCII character is refused.
	forbiddenInHost = regexp.MustCompile(`[\x00-\x20#%/:<>?@\[\\\]^|\x7f]`)
	longEscape      = regexp.MustCompile(`\\x\{([0-9A-F]+)\}`)
	// ignored are the IDNA rules that the URL standard turns off: those for hyphens, label lengths and ASCII.
	ignored = []string{"V2", "V3", "A4_1", "A4_2", "U1"}
)

// column reads a column of IdnaTestV2 as the text of a JSON string. If it is empty, it takes the previous column.
func column(text, before string) string {
	switch text = strings.TrimSpace(text); text {
	case "":
		return before
	case `""`:
		return text
	}
	return `"` + longEscape.ReplaceAllStringFunc(text, func(escape string) string {
		c, _ := strconv.ParseInt(longEscape.FindStringSubmatch(escape)[1], 16, 32)
		high, low := utf16.EncodeRune(rune(c))
		return fmt.Sprintf(`\u%04X\u%04X`, high, low)
	}) + `"`
}

func (s *urlSuite) hosts(t *testing.T) (passed, all int) {
	t.Helper()
	text, err := fs.ReadFile(suite.Crate(t, "idna"), "tests/IdnaTestV2.txt")
	if err != nil {
		t.Fatal(err)
	}
	var sources []json.RawMessage
	var wants []string // in JSON
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		columns := strings.Split(line, ";")
		if len(columns) < 5 {
			continue
		}
		source := column(columns[0], "")
		ascii := column(columns[3], column(columns[1], source))
		status := strings.FieldsFunc(cmp.Or(strings.TrimSpace(columns[4]), columns[2]), func(r rune) bool { return strings.ContainsRune("[], ", r) })
		status = slices.DeleteFunc(status, func(rule string) bool { return slices.Contains(ignored, rule) })
		if len(status) > 0 || ascii == `""` || forbiddenInHost.MatchString(ascii) {
			ascii = "null"
		}
		sources, wants = append(sources, json.RawMessage(source)), append(wants, ascii)
	}
	var results []json.RawMessage
	s.call(t, "host", map[string]any{"hosts": sources}, &results)
	for i, want := range wants {
		if got := string(results[i]); got != want {
			s.failed["host "+string(sources[i])] = fmt.Sprintf("it is %s, want %s", got, want)
			continue
		}
		passed++
	}
	compareRules(t, sources, results)
	return passed, len(wants)
}

// compareRules checks that a rule never takes a name for another host than the guest does. It may only refuse more.
func compareRules(t *testing.T, sources, hosts []json.RawMessage) {
	t.Helper()
	taken := 0
	for i, source := range sources {
		var name string
		var host *string
		if err := errors.Join(json.Unmarshal(source, &name), json.Unmarshal(hosts[i], &host)); err != nil {
			t.Fatal(err)
		}
		rule, err := (httpcap.Rule{Host: name}).Normal()
		if err != nil {
			continue
		}
		taken++
		if host == nil || rule.Host != strings.TrimSuffix(*host, ".") {
			t.Errorf("%s is %s in a rule and %s in URL", source, rule.Host, hosts[i])
		}
	}
	if taken < 200 {
		t.Errorf("rules take %d of %d names, want at least 200", taken, len(sources))
	}
}

func readJSON(t *testing.T, files fs.FS, name string, v any) {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
