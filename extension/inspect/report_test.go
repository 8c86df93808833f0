package inspect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
)

func inspect(text string, bindings ...extension.Binding) Report {
	return Inspect(Input{FS: tree("a.ts", text), Entry: "a.ts", Bindings: bindings})
}

var asked = []extension.Binding{
	{Name: "api", Grant: http.Rights{Rules: []http.Rule{{Host: "*.Example.com"}, {Host: "one.org"}}}},
	{Name: "clock", Grant: clock.Kind.On()},
	{Name: "network", Grant: http.Rights{}},
	{Name: "notes", Grant: kv.Rights{}},
}

func names(uses []Use) string {
	var all []string
	for _, u := range uses {
		all = append(all, fmt.Sprintf("%s@%d:%d", u.Name, u.Places[0].Line, u.Places[0].Column))
	}
	return strings.Join(all, " ")
}

func TestReportBindings(t *testing.T) {
	for _, tt := range []struct{ text, used, unused, undeclared, elsewhere string }{
		{"", "", "api clock network notes", "", ""},
		{"env.notes.get('a')", "notes@1:5", "api clock network", "", ""},
		{"env?.notes; env['api']; env!.x", "api@1:17 notes@1:6", "clock network", "x@1:30", ""},
		{"// env.notes\n'env.notes'; `env.notes`; process.env.notes; /env.notes/", "", "api clock network notes", "", ""},
		{"x = `${env.notes}`", "notes@1:12", "api clock network", "", ""},
		{"run: async (_, { notes, api: b, ...rest }) => 1", "api@1:25 notes@1:18", "clock network", "", "1:33"},
		{"{ run(input: Map<string, A>, e) { return e.notes } } e.api", "notes@1:44", "api clock network", "", ""},
		{"{ run: (input, ctx: Env) => ctx.notes }", "notes@1:33", "api clock network", "", ""},
		{"run(input, ctx); ctx.notes", "", "api clock network notes", "", ""},
		{"const { notes = 1, api: { get } } = env", "api@1:20 notes@1:9", "clock network", "", ""},
		{"function f({ notes }: Env, x?: Env) { x.api }", "api@1:41 notes@1:14", "clock network", "", ""},
		{"run: (a, env) => f(env)", "", "api clock network notes", "", "1:20"},
		{"env[name]; env[`notes`]", "notes@1:16", "api clock network", "", "1:1"},
		{"fetch('x'); Date.now()", "clock@1:13 network@1:1", "api notes", "", ""},
		{"class A { fetch(n) { return n } async fetch() {} }; ({ fetch(a) { return a } })", "", "api clock network notes", "", ""},
		{"function get(fetch, x) { return fetch(x) } const put = async (x, fetch = get) => { await fetch(x) }", "", "api clock network notes", "", ""},
		{"if (fetch) { fetch(1) }", "network@1:5", "api clock notes", "", ""},
		{"function get(x = fetch) { x() } fetch(get)\n{ }", "network@1:18", "api clock notes", "", ""},
		{"a.fetch('x'); ({ Date: 1 })", "", "api clock network notes", "", ""},
		{"run: (a, e = <b>c) => e", "", "api clock network notes", "", "1:1"},
		{"const { get } = env.notes; const { set } = env?.['api']", "api@1:50 notes@1:21", "clock network", "", ""},
		{"run: handler", "", "api clock network notes", "", "1:1"},
		{"run: wrap((_, e) => e.notes)", "", "api clock network notes", "", "1:1"},
		{"run: async <T>(_: T, e) => e.notes", "", "api clock network notes", "", "1:1"},
		{"run: (_) => 1, run: 1; run: 'x'; run: true; run: async (_) => 1", "", "api clock network notes", "", ""},
		{"({ 'run': (_, e) => e.notes })", "notes@1:23", "api clock network", "", ""},
		{`({ ["run"](_, e) { e.notes } })`, "notes@1:22", "api clock network", "", ""},
		{"['run'].map((_, e) => e.notes)", "", "api clock network notes", "", ""},
		{"run: (...all) => all[1].notes", "", "api clock network notes", "", "1:1"},
		{"run: function () { return arguments[1].notes }", "", "api clock network notes", "", "1:27"},
		{"a.arguments; ({ arguments: 1 })", "", "api clock network notes", "", ""},
		{"x ? env : 1", "", "api clock network notes", "", "1:5"},
		{"globalThis.fetch('x'); globalThis?.Date", "clock@1:36 network@1:12", "api notes", "", ""},
		{"globalThis['fetch']('x'); globalThis?.[`Da` + 'te']", "clock@1:40 network@1:12", "api notes", "", ""},
		{"const { fetch: f, Date } = globalThis", "clock@1:19 network@1:9", "api notes", "", ""},
		{"a.globalThis.fetch('x'); a['fetch']", "", "api clock network notes", "", ""},
	} {
		r := inspect(tt.text, asked...)
		var elsewhere []string
		for _, p := range r.EnvElsewhere {
			elsewhere = append(elsewhere, fmt.Sprintf("%d:%d", p.Line, p.Column))
		}
		got := []string{names(r.BindingsUsed), strings.Join(r.BindingsUnused, " "), names(r.UndeclaredBindings), strings.Join(elsewhere, " ")}
		if want := []string{tt.used, tt.unused, tt.undeclared, tt.elsewhere}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", tt.text, got, want)
		}
	}
}

func TestReportHosts(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`"https://api.example.com/x?y"`, "api.example.com+"},
		{`"https://EXAMPLE.com:8443"`, "example.com:8443-"},
		{`"a http://one.org, and wss://two.org."`, "one.org+ two.org-"},
		{`"https://user:pass@evil.net/https://one.org"`, "evil.net- one.org+"},
		{"`https://${host}/x`", "*-"},
		{"`https://api.${`${a}.b`}.example.com:${port}/x`", "api.*.example.com:*+"},
		{"`${'https://inner.org'}`", "inner.org-"},
		{`"https://" + "one" + ".org/x"`, "one.org+"},
		{`"h\x74tps://\u006fne.org"`, "one.org+"},
		{`"https://" + host + "/x"`, "*-"},
		{`"https://api." + domain; "https://evil" + (".org")`, "api.*- evil*-"},
		{`"https://one.org" + path; "https://one.org/" + path`, "one.org+"},
		{`scheme + "://one.org"`, "one.org+"},
		{"`${scheme}://one.org`", "one.org+"},
		{`"https:one.org"; "HTTPS:/a.one.org"; "https:\\\\b.one.org"; "https:///c.one.org"`, "a.one.org- b.one.org- c.one.org- one.org+"},
		{`"https: no"; "http:status"; "node:http"; "x://"; "://"`, ""},
		{`"https://\uff4fne.org"; "https://two\u3002org"; "https://th\u00adree%2eorg:80/"`, "one.org+ three.org:80- two.org-"},
		{`"api.github.com"`, "api.github.com-"},
		{`"github.com"; "github.com/a"; "//cdn.github.io/x"`, "cdn.github.io- github.com-"},
		{`"127.0.0.1:80"; "localhost:8080"; "http://[::1]:80/"`, "127.0.0.1:80- [::1]:80- localhost:8080-"},
		{`"notes.md"; "a.b"; "user.name"; "1.5"; "hello. world"; "index.ts"; "../x/y.z"; "com"; "co.uk"; "readme.en.md"`, ""},
		{"// https://one.org\n/https:\\/\\/one.org/", ""},
		{`"https://münchen.example/"; "https://"; "http://metadata/"`, "metadata- münchen.example-"},
		{`"^https?://[a-z]+$"; "https://<bucket>"; "64:ff9b::192.168.0.1"; "[::1]:80"; "10.0.0.1"`, "10.0.0.1- [::1]:80-"},
	} {
		var got []string
		for _, h := range inspect(tt.text, asked...).Hosts {
			got = append(got, h.Name+map[bool]string{true: "+", false: "-"}[h.Covered])
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestReportEval(t *testing.T) {
	for text, want := range map[string]string{
		"eval('x')": "1:1 eval", "globalThis.eval('x')": "1:12 eval", "const e = eval": "1:11 eval", "a.eval(x); ({ eval: 1 }); 'eval(x)'; /eval/ // eval(x)": "",
		"`${eval(x)}`": "1:4 eval", "\\u0065val(x)": "1:1 eval", "new Function('x')": "1:5 Function, which turns text into code", "x(Function)": "1:3 Function, which turns text into code",
		"let f: Function; Function.prototype; a instanceof Function": "", "(async () => {}).constructor('x')": "1:18 a constructor that is called, and may be Function",
		"class A { constructor() { super() } }": "", "import('./x')": "1:1 import()", "import './x'; import.meta": "", "setTimeout('x', 1)": "1:1 setTimeout of text", "setTimeout(x, 1)": "",
		"new AsyncFunction()":          "1:5 AsyncFunction, which turns text into code",
		`globalThis["ev" + "al"]("x")`: "1:12 eval", "globalThis?.[`eval`]": "1:14 eval", "const { eval: e, Function } = globalThis": "1:18 Function, which turns text into code; 1:9 eval",
		`[]["constructor"]["const" + "ructor"]("x")()`: "1:4 a constructor that is called, and may be Function; 1:19 a constructor that is called, and may be Function",
		"globalThis[name]": "1:1 globalThis with a name that is computed", "globalThis['a' + b]; globalThis[`a${b}`]": "1:1 globalThis with a name that is computed; 1:22 globalThis with a name that is computed",
		"const g = globalThis; (globalThis as any).x":                                             "1:11 globalThis as a whole, with eval and Function; 1:24 globalThis as a whole, with eval and Function",
		"typeof globalThis; globalThis.x; globalThis['x'] = 1; a.globalThis; ({ globalThis: 1 })": "", "return Function": "1:8 Function, which turns text into code", "Function`x`": "1:1 Function, which turns text into code",
		`a["eval"]; a["x"]`: "",
	} {
		if got := signsText(inspect(text).Eval); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func signsText(list []Sign) string {
	var all []string
	for _, s := range list {
		all = append(all, fmt.Sprintf("%d:%d %s", s.Line, s.Column, s.What))
	}
	return strings.Join(all, "; ")
}

func TestReportObfuscation(t *testing.T) {
	data := make([]byte, 3000)
	for i := range data {
		data[i] = byte(i * i * 7 >> 3)
	}
	packed := base64.StdEncoding.EncodeToString(data)
	words := strings.Repeat("the quick brown fox jumps over the lazy dog and goes home; ", 50)
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "const a = 'text' // " + words, ""},
		{"words", "const a = '" + words + "'", ""},
		{"zeros", "const a = '" + strings.Repeat("0", 5000) + "'", ""},
		{"base64", "const a =\n  '" + packed + "'", "2:3 4002 bytes of base64 or hexadecimal; 2:1 a line of 4004 bytes that reads like packed code"},
		{"hexadecimal", "a = `" + fmt.Sprintf("%x", data) + "`", ""},
		{"hexadecimal string", "a = \"" + fmt.Sprintf("%x", data[:600]) + "\"", "1:5 1202 bytes of base64 or hexadecimal"},
		{"escapes", `a = "\x68\x65\x6c\x6c\x6f\u0020\u{77}\x6f\x72"`, "1:5 a string with 9 characters written as escapes"},
		{"colours", `a = "\x1b[31m\x1b[32m\x1b[33m\x1b[31m\x1b[31m\x1b[31m\x1b[31m\x1b[31m\x1b[31m"`, ""},
		{"bidi", "// a\u202eb\nx = '\u2066'", `1:5 a character that turns the direction of text: '\u202e'; 2:6 a character that turns the direction of text: '\u2066'`},
		{"unseen", "\uFEFFa\u200b = 'é\U000E0041'", `1:3 an invisible character: '\u200b'; 1:9 an invisible character: '\U000e0041'`},
		{"scripts", "const \u0430dmin = 1; \u0430dmin; const größe = 2, имя = 3", `1:7 a name with letters of several scripts that look alike: "аdmin"`},
		{"escaped name", `\u0061 = 1`, "1:1 a name written with escapes"},
		{"hexadecimal names", "_0x1a2b; _0x1a2c; _0x1a2d; _0x1a2e; _0x1a2f; _0x1a30", `1:37 names such as "_0x1a2f", which a program made up`},
		{"rotation", "a.push(a.shift()); a['push'](a['shift']()); b.push(a.shift())", "1:3 a list that is rotated; 1:22 a list that is rotated"},
		{"numbers", "String.fromCharCode(" + strings.Repeat("104, ", 20) + "1)", "1:8 text that is made of numbers"},
	} {
		if got := signsText(inspect(tt.text).Obfuscation); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Unreadable parts are reported, and code in packages is distinguished from the extension's own.
func TestReportFiles(t *testing.T) {
	files := tree(
		"a.ts", "env.notes; x = {} / 1; '/'; env.api", "b.json", `{"a": ["https://data.org"]}`, "package.json", `{"homepage": "https://home.org"}`, "c.txt", "eval()", "types.d.ts", "declare const x: eval",
		"d.tsx", "x = <a>'</a>", "big.ts", strings.Repeat(" ", extension.MaxSource+1), "node_modules/p/i.js", "env.notes; eval(); 'https://package.org'", "node_modules/p/i.d.ts", "eval()", "node_modules/p/x.json", `"https://no.org"`,
	)
	r := Inspect(Input{FS: files, Entry: "a.ts", Bindings: asked, Component: 77})
	if r.Files != 7 || r.PackageFiles != 1 || r.PackageSize != 40 || r.ComponentSize != 77 || r.Size < extension.MaxSource {
		t.Errorf("%+v", r)
	}
	if got := names(r.BindingsUsed); got != "api@1:33 notes@1:5" {
		t.Errorf("bindings %q", got)
	}
	if len(r.Hosts) != 2 || r.Hosts[0].Name != "data.org" || r.Hosts[1].Places[0] != (Place{"node_modules/p/i.js", 1, 20}) {
		t.Errorf("hosts %+v", r.Hosts)
	}
	if len(r.Eval) != 1 || r.Eval[0].String() != "node_modules/p/i.js:1:12" {
		t.Errorf("eval %+v", r.Eval)
	}
	want := []Sign{
		{Place{"a.ts", 1, 19}, "from here on the code may be read wrongly, because of a slash that may be a division or start a regular expression"},
		{Place{"big.ts", 0, 0}, "larger than 16 MiB"},
		{Place{"d.tsx", 1, 5}, "from here on the code may be read wrongly, because of JSX"},
	}
	if !reflect.DeepEqual(r.Unread, want) {
		t.Errorf("unread %+v", r.Unread)
	}
}

func TestReportPackages(t *testing.T) {
	before := Inspect(Input{FS: tree(), Packages: []PackageInfo{{Name: "a", Version: "1.0.0"}, {Name: "b", Version: "1.0.0"}, {Name: "c", Version: "1.0.0"}}})
	r := Inspect(Input{FS: tree(), Previous: &before, Packages: []PackageInfo{
		{Name: "d\n\u202e", Version: "0.1.0", Warnings: []string{"young\x1b[2J"}}, {Name: "b", Version: "2.0.0", License: "MIT", Size: 2048}, {Name: "b", Version: "1.0.0"}, {Name: "a", Version: "1.0.0"},
	}})
	if want := []PackageChange{{`d \u202e`, "", "0.1.0"}}; !reflect.DeepEqual(r.New, want) {
		t.Errorf("new %+v", r.New)
	}
	if want := []PackageChange{{"b", "1.0.0", "1.0.0, 2.0.0"}}; !reflect.DeepEqual(r.Changed, want) {
		t.Errorf("changed %+v", r.Changed)
	}
	if want := []PackageChange{{"c", "1.0.0", ""}}; !reflect.DeepEqual(r.Gone, want) {
		t.Errorf("gone %+v", r.Gone)
	}
	for _, line := range []string{
		"package b 2.0.0, MIT, 2.0 KiB\n", `package d \u202e 0.1.0, no licence named, 0 B` + "\n" + `  warning: young\x1b[2J` + "\n",
		`new package: d \u202e 0.1.0` + "\n", "changed package: b 1.0.0 -> 1.0.0, 2.0.0\n", "gone package: c 1.0.0\n",
	} {
		if !strings.Contains(r.Text(), line) {
			t.Errorf("%q is not in\n%s", line, r.Text())
		}
	}
}

func TestReportText(t *testing.T) {
	r := Inspect(Input{FS: tree("a\n\x1b.ts", "env.notes; env.other; f(env)\n'https://one.org'; 'https://two.org/\u202e'; eval('x')"), Entry: "a\n\x1b.ts", Bindings: asked})
	want := `a \x1b.ts: 1 file, 80 B
bindings used:
  notes: a \x1b.ts:1:5
bindings requested but not used: api, clock, network
bindings used but not requested:
  other: a \x1b.ts:1:16
env is passed on whole or read by a computed name, so uses may be missing: a \x1b.ts:1:25
host one.org: a \x1b.ts:2:1
host two.org, which no http binding names: a \x1b.ts:2:20
code made from text: a \x1b.ts:2:41: eval
hard to read: a \x1b.ts:2:37: a character that turns the direction of text: '\u202e'
`
	if r.Text() != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text(), want)
	}
}

// The report of the examples names the bindings and hosts that they use, and nothing unusual.
func TestReportExamples(t *testing.T) {
	_, manifests := examples(t)
	fsys, _ := examples(t)
	for entry, m := range manifests {
		text, err := readFile(fsys, entry, extension.MaxSource)
		if err != nil {
			t.Fatal(err)
		}
		r := Inspect(Input{FS: tree(entry, text), Entry: entry, Bindings: m.Bindings})
		if r.BindingsUnused != nil || r.UndeclaredBindings != nil || r.EnvElsewhere != nil || r.Eval != nil || r.Obfuscation != nil || r.Unread != nil {
			t.Errorf("%s: %s", entry, r.Text())
		}
		for _, h := range r.Hosts {
			if !h.Covered {
				t.Errorf("%s: %+v", entry, h)
			}
		}
	}
}

// Large and repetitive input is read in one pass. Entries that do not fit into a report are counted.
func TestReportIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"one line of evals":      strings.Repeat("eval(x);", 1<<15),
		"one line of unseen":     strings.Repeat("é\u200b", 1<<16),
		"hosts":                  strings.Repeat("'https://a.org';", 1<<14),
		"names":                  manyNames(1 << 16),
		"env in brackets":        strings.Repeat("run((env,{", 1<<14),
		"runs":                   strings.Repeat("run:(a,{b:(", 1<<14),
		"runs of types":          strings.Repeat("run(a:{b:", 1<<14),
		"patterns":               strings.Repeat("({a:", 1<<14) + "1" + strings.Repeat("}:Env)", 1<<14),
		"templates":              strings.Repeat("`${", 1<<16),
		"strings that are added": strings.Repeat("'a'+", 1<<16),
		"texts that are added":   strings.Repeat("'a'+`b`+", 1<<16),
		"schemes in a string":    "'" + strings.Repeat("http:", 1<<18) + "'",
		"globals":                strings.Repeat("globalThis['a'+", 1<<15),
		"patterns of globals":    strings.Repeat("{a:", 1<<15) + strings.Repeat("}=globalThis", 1<<15),
		"URLs in a string":       "'" + strings.Repeat("a://b", 1<<16) + "'",
		"brackets":               strings.Repeat("[", 1<<18),
		"generic arrows":         strings.Repeat("<T>(x:T)=>", 1<<15),
		"slashes":                strings.Repeat("\na/", 1<<16),
	} {
		r := inspect(text, asked...)
		if len(r.Eval)+len(r.Obfuscation)+len(r.EnvElsewhere)+len(r.Unread) > 4*maxSigns || len(r.Hosts) > maxSigns || len(r.UndeclaredBindings) > maxSigns {
			t.Errorf("%s: %d bytes", name, len(r.Text()))
		}
	}
	if r := inspect(strings.Repeat("eval(x);", 1000)); len(r.Eval) != maxInFile || r.Omitted != 1000-maxInFile {
		t.Errorf("%d, and %d omitted", len(r.Eval), r.Omitted)
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "env.n%d;'https://h%d.org';", i, i)
	}
	return b.String()
}

func FuzzInspect(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, "a.ts")
		f.Add(text, "node_modules/a/b.jsx")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		in := Input{FS: fstest.MapFS{"a.ts": {Data: []byte(text)}}, Entry: name, Bindings: asked, Packages: []PackageInfo{{Name: name, Warnings: []string{text}}}}
		r := Inspect(in)
		for _, list := range [][]Sign{r.Eval, r.Obfuscation, r.Unread} {
			for _, s := range list {
				inside(t, text, s.Place)
			}
		}
		shown := r.Text()
		if printable.Text(shown) != shown {
			t.Errorf("not printable: %q", shown)
		}
		first, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		in.Previous = &r
		again := Inspect(in)
		if second, _ := json.Marshal(again); string(first) != string(second) {
			t.Errorf("not the same:\n%s\n%s", first, second)
		}
		var read Report
		if err := json.Unmarshal(first, &read); err != nil || !reflect.DeepEqual(read, r) {
			t.Errorf("%v\n%+v\n%+v", err, read, r)
		}
	})
}
