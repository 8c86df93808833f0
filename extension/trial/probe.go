package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	platform "github.com/stilehost/stile/internal/absent"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
)

const (
	probeCPU  = time.Second      // processor time of one call
	probeAll  = 5 * time.Second  // processor time of all calls
	probeTime = 20 * time.Second // of all calls, with what the host does for them

	rounds = 4 // of one call, each with the answers that its bindings lacked before
)

// Probe calls each tool of a component with inputs that its schema suggests, and returns the problems of tools that can only fail because the
// platform lacks something, such as Intl or a module of node, or for the global fetch without its binding: each input that could be tried failed, and at least one for this reason. A tool that fails otherwise,
// or reaches a limit, is no problem. Nor is one that a test shows to work: works names those. names are what the code may read of inputs, for
// tools without a schema. Bindings have empty stores and made-up answers. r.Tests are not run.
//
// All calls together take 5 s of processor time, or 20 s of time, and a call more; what is not reached is no problem. An error is a fault of the host or the end of ctx.
func Probe(ctx context.Context, r Request, works map[string]bool, names []string) (found []extension.Problem, err error) {
	tools, err := r.Component.Tools(ctx)
	if err != nil {
		return nil, err
	}
	r.Limits.CPU, r.Limits.Wall = probeCPU, defaultWall
	end, spent := time.Now().Add(probeTime), time.Duration(0)
	for _, tool := range tools {
		if works[tool.Name] {
			continue
		}
		var lacks *lack
		for _, input := range suggestions(tool.InputSchema, names) {
			if time.Until(end) <= 0 || spent >= probeAll {
				return found, nil
			}
			l, works, err := probe(ctx, r, tool.Name, input, &spent)
			if err != nil {
				return found, fmt.Errorf("try %s: %w", double.Quoted(tool.Name), err)
			}
			if works {
				lacks = nil
				break
			}
			lacks = cmp.Or(lacks, l)
		}
		if lacks != nil {
			found = append(found, lacks.problem(tool.Name))
		}
	}
	return found, nil
}

// lack is a call that failed for what the platform lacks.
type lack struct {
	*absence
	failure *failure
	input   json.RawMessage
	in      string // the place that uses it, if it is not the author's
}

// probe calls a tool. works is set if it works as far as one can tell: it returned something, or it ended for a reason that has nothing to do
// with this input. l is nil if the call failed otherwise than for what is lacking, which may be for a wrong input.
func probe(ctx context.Context, r Request, tool string, input json.RawMessage, spent *time.Duration) (l *lack, works bool, err error) {
	answers := map[string]json.RawMessage{}
	for range rounds {
		e := newEnvironment()
		ended, err := e.try(ctx, r, tool, input, answers, spent)
		if closed := e.stores.Close(); closed != nil || ctx.Err() != nil {
			return nil, false, cmp.Or(closed, err, ended)
		}
		switch failure := failureOf(ended); {
		case err != nil: // there is no double of what the manifest asks for, or no room for its store
			return nil, true, nil
		case ended == nil:
			return nil, true, nil
		case failure == nil:
			return nil, false, ended
		case len(e.missing) > 0:
			if !e.answer(answers) {
				return nil, true, nil
			}
			continue
		}
		if guest, ok := errors.AsType[*host.GuestError](ended); ok {
			return lacking(r, guest, input), false, nil
		}
		_, wrong := errors.AsType[*host.InputError](ended)
		return nil, !wrong, nil
	}
	return nil, true, nil
}

// try makes one call, and adds its processor time. err is why there was none, and ended its error.
func (e *environment) try(ctx context.Context, r Request, tool string, input json.RawMessage, answers map[string]json.RawMessage, spent *time.Duration) (ended, err error) {
	env := make(host.Env, len(r.Bindings))
	for _, b := range r.Bindings {
		given := answers[b.Name]
		if given == nil && !b.Harmless() {
			given = json.RawMessage("{}") // an empty store, or no answers
		}
		if env[b.Name], err = e.capability(ctx, e.test("probe", b.Name), b, given); err != nil {
			return nil, err
		}
	}
	vars := extension.VarsText((&extension.Manifest{Vars: r.Vars}).Configure(nil))
	result, ended := r.Component.Do(ctx, host.Request{Tool: tool, Input: input, Env: env, WASI: r.WASI, Vars: vars, Limits: r.Limits, Idle: e.clock.Move})
	*spent += result.Usage.CPU
	return ended, nil
}

// answer adds made-up answers, for what a call asked in vain. It reports whether there are more than before.
func (e *environment) answer(answers map[string]json.RawMessage) (more bool) {
	lines := map[string][]string{}
	for _, m := range e.missing {
		if m.line != "" {
			lines[m.binding] = append(lines[m.binding], m.line)
		}
	}
	for binding, all := range lines {
		merged, made := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if given := answers[binding]; given != nil && json.Unmarshal(given, &merged) != nil || json.Unmarshal([]byte("{"+strings.Join(all, ", ")+"}"), &made) != nil {
			return false
		}
		for key, answer := range made {
			if _, there := merged[key]; !there {
				merged[key], more = answer, true
			}
		}
		if answers[binding], _ = json.Marshal(merged); answers[binding] == nil {
			return false
		}
	}
	return more
}

// caughtBefore begins the line in a stack with an error that the code caught before it failed.
const caughtBefore = "Caught before: "

// lacking says what a failed call lacked; nil if it failed otherwise.
func lacking(r Request, err *host.GuestError, input json.RawMessage) *lack {
	stack, before, _ := strings.Cut("\n"+err.Failure.Stack, "\n"+caughtBefore)
	lacked := r.missed(err.Failure.Message, input)
	for line := range strings.Lines(stack) {
		if cause, is := strings.CutPrefix(line, "Caused by "); is && lacked == nil {
			lacked = r.missed(cause, input)
		}
	}
	if lacked == nil {
		lacked = cmp.Or(r.native(err.Failure.Message+"\n"+before, stack), uninstalled(err.Failure.Message))
	}
	if lacked == nil {
		name, instead, ok := platform.Find(before)
		if !ok || !platform.Mentions(err.Failure.Message, name) {
			return nil
		}
		lacked, stack = noGlobal(name, instead), before
	}
	f := failureOf(err)
	f.file, f.line, f.column = "", 0, 0
	f.place(stack)
	if lacked.said != "" {
		f.text = strings.Replace(f.text, lacked.said, "", 1)
	}
	l := &lack{absence: lacked, failure: f, input: input}
	for line := range strings.Lines(stack) {
		if at, ok := host.ReadFrame(line); ok && !strings.HasPrefix(at.File, "node:") {
			if npmspec.InPackage(at.File) {
				l.in = fmt.Sprintf("%s:%d", at.File, at.Line)
			}
			break
		}
	}
	return l
}

// native returns what a call lacked if a package could not load its native code: its frames come before those of the author.
func (r Request) native(message, stack string) *absence {
	if r.Packages == nil || !platform.IsNative(message) {
		return nil
	}
	for line := range strings.Lines(stack) {
		at, ok := host.ReadFrame(line)
		if !ok {
			continue
		}
		if !npmspec.InPackage(at.File) {
			return nil
		}
		if name, ok := npmspec.Native(r.Packages, at.File); ok {
			return &absence{what: "the package " + name + " needs native code, which an extension cannot run", use: ", in %s", instead: platform.Native}
		}
	}
	return nil
}

// uninstalled returns what a call lacked if a package asks to install another one, whose name it computes.
func uninstalled(message string) *absence {
	name, ok := platform.FindInstall(message)
	if !ok {
		return nil
	}
	return &absence{
		what: "a package asks for another one, " + name + ", which is not in the bundle", use: ": %s",
		instead: "import of that package in the tool's own code, which passes it on if there is an option for that; or a package that does without it",
	}
}

// absence is what a call lacked.
type absence struct {
	what    string // as in "there is no Intl here"
	use     string // goes on with the place that uses it: a format
	instead string
	said    string // the part of the error that instead repeats
}

func noGlobal(name, instead string) *absence {
	return &absence{what: "there is no " + name + " here", use: ", which %s uses", instead: instead}
}

// missed returns what calls lack whatever their input, if the message of an error is about that, and else nil.
func (r Request) missed(message string, input json.RawMessage) *absence {
	if name, instead, ok := platform.FindModule(message); ok {
		a := noGlobal("module "+name+" of node", "code or a package that does without "+name+": "+instead)
		a.said = ": " + instead
		return a
	}
	if part, module, ok := platform.FindPart(message); ok {
		return noGlobal(part+" of node:"+module, "code or a package that does without "+part)
	}
	if name, instead, ok := platform.Find(message); ok {
		return noGlobal(name, instead)
	}
	if strings.Contains(message, platform.UnboundFiles) && !r.Open {
		return &absence{
			what: "the manifest names no files for node:fs", use: ", which %s uses",
			instead: `"bindings": {"files": {"workspace": {"path": "/", "access": "read-write"}}}, "fs": "files" in the manifest`,
		}
	}
	origin, ok := platform.FindFetch(message)
	_, host, _ := strings.Cut(origin, "://")
	if !ok || r.Open || slices.ContainsFunc(r.Bindings, func(b extension.Binding) bool { return b.Name == network }) || strings.Contains(string(input), host) {
		return nil // with another input it may ask nobody
	}
	b, err := extension.ParseSpec(capabilities.Builtin, network+"=http:"+origin+"/**")
	if err != nil {
		return nil
	}
	line, _ := extension.ShortRemedy(capabilities.Builtin, network, capability.Wanted{Grant: b.Grant}.Remedy(network))
	return &absence{what: "the manifest does not ask for the binding " + network + ", which fetch of " + origin + " needs", use: " in %s", instead: line + " in the manifest"}
}

// network is the binding of the global fetch.
const network = "network"

func (l *lack) problem(tool string) extension.Problem {
	text := fmt.Sprintf("the tool %s cannot work, because %s", tool, l.what)
	if l.in != "" {
		text += fmt.Sprintf(l.use, l.in)
	}
	text += fmt.Sprintf(": with the input %s it failed with %s, and nothing else that was tried works", printable.Short(string(l.input), maxValue), l.failure.text)
	p := extension.Problem{Text: text, Fix: l.instead + "; if the tool works with what callers give it, show that in a test of the manifest"}
	if !npmspec.InPackage(l.failure.file) {
		p.File, p.Line, p.Column = l.failure.file, l.failure.line, l.failure.column
	}
	return p
}

const maxSuggested = 4 // inputs of one tool

// suggestions are inputs that a schema suggests: examples, the least that it asks for, all that it names, and that with other choices.
func suggestions(schema string, names []string) []json.RawMessage {
	var document any
	if json.Unmarshal([]byte(schema), &document) != nil {
		document = map[string]any{}
	}
	var all []json.RawMessage
	add := func(v any) {
		text, err := json.Marshal(v)
		if err == nil && len(all) < maxSuggested && !slices.ContainsFunc(all, func(other json.RawMessage) bool { return string(other) == string(text) }) {
			all = append(all, text)
		}
	}
	root, _ := document.(map[string]any)
	if examples, ok := root["examples"].([]any); ok {
		for _, v := range examples[:min(2, len(examples))] {
			add(v)
		}
	}
	choices := 0
	for _, whole := range []bool{false, true} {
		s := suggester{document: document, whole: whole}
		add(s.value(document, "", 0))
		choices = s.choices
	}
	_, closed := root["properties"]
	if _, typed := root["$ref"]; !closed && !typed && len(names) > 0 && (root["type"] == nil || root["type"] == "object") {
		named := map[string]any{}
		for _, name := range names {
			named[name] = text(name, "")
		}
		add(named)
	}
	for choice := 1; choice < choices && len(all) < maxSuggested; choice++ {
		s := suggester{document: document, whole: true, choice: choice}
		add(s.value(document, "", 0))
	}
	return all
}

// suggester makes a value of a schema.
type suggester struct {
	document any
	whole    bool // with what is optional
	other    bool // with other values than those of the first item of a list
	count    int
	choice   int // of a list of values or schemas, if it has so many
	choices  int // the length of the longest such list
}

// choose returns one of a list.
func (s *suggester) choose(list []any) any {
	s.choices = max(s.choices, len(list))
	i := s.choice
	if s.other {
		i++
	}
	return list[min(i, len(list)-1)]
}

func (s *suggester) value(schema any, name string, depth int) any {
	o, _ := schema.(map[string]any)
	if s.count++; s.count > 1000 || depth > 16 {
		return nil
	}
	if v, ok := o["const"]; ok {
		return v
	}
	for _, key := range []string{"examples", "enum"} {
		if list, ok := o[key].([]any); ok && len(list) > 0 {
			return s.choose(list)
		}
	}
	if v, ok := o["default"]; ok {
		return v
	}
	if ref, ok := o["$ref"].(string); ok {
		return s.value(s.referenced(ref), name, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := o[key].([]any); ok && len(list) > 0 {
			s.choices = max(s.choices, len(list))
			return s.value(list[min(s.choice, len(list)-1)], name, depth+1)
		}
	}
	kind := o["type"]
	if list, ok := kind.([]any); ok && len(list) > 0 {
		kind = list[0]
	}
	number := func(key string, otherwise float64) float64 {
		if n, ok := o[key].(float64); ok {
			return n
		}
		return otherwise
	}
	switch kind {
	case "string":
		format, _ := o["format"].(string)
		t := text(name, format)
		if s.other {
			t = others().Replace(t)
		}
		if least := int(min(number("minLength", 0), 1000)); len(t) < least {
			t += strings.Repeat("a", least-len(t))
		}
		return t[:int(min(float64(len(t)), number("maxLength", 1000)))]
	case "number", "integer":
		least, most := number("minimum", number("exclusiveMinimum", 0)+1), number("maximum", number("exclusiveMaximum", 1<<30)-1)
		n := max(least, min(1, most))
		if s.other && n+1 <= most {
			n++
		}
		return n
	case "boolean":
		return s.whole != s.other
	case "null":
		return nil
	case "array":
		return s.list(o["items"], name, depth, int(min(number("minItems", 0), 10)), int(number("maxItems", 2)))
	}
	made := map[string]any{}
	properties, _ := o["properties"].(map[string]any)
	needed, _ := o["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if s.whole || slices.Contains(needed, any(name)) {
			made[name] = s.value(properties[name], name, depth+1)
		}
	}
	if parts, ok := o["allOf"].([]any); ok {
		for _, part := range parts {
			if more, ok := s.value(part, name, depth+1).(map[string]any); ok {
				maps.Copy(made, more)
			}
		}
	}
	return made
}

// list has two items that differ, if the schema allows it, because code that orders or compares items does nothing with one.
func (s *suggester) list(items any, name string, depth, least, most int) []any {
	list := []any{}
	for range max(least, 1) {
		list = append(list, s.value(items, name, depth+1))
	}
	if s.other || most < 2 {
		return list
	}
	s.other = true
	second := s.value(items, name, depth+1)
	s.other = false
	switch {
	case reflect.DeepEqual(second, list[0]):
	case len(list) == 1:
		list = append(list, second)
	default:
		list[1] = second
	}
	return list
}

// others makes another text of the same form of what text returns.
var others = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("2024-01-31", "2024-02-29", "12:00:00Z", "13:00:00Z", "ada@example.com", "bob@example.com", "example.com/", "example.com/b", "6f2b8a52-", "7f2b8a52-", "PT1H", "PT2H",
		"Europe/Berlin", "Europe/Paris", "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210", "1.5", "2.5", "{}", "[]", "a", "b")
})

func (s *suggester) referenced(ref string) any {
	at := s.document
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		o, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return at
}

// text is a text that a property of this name may have.
func text(name, format string) string {
	lower := strings.ToLower(name)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(lower, word) })
	}
	switch {
	case format == "date":
		return "2024-01-31"
	case format == "time":
		return "12:00:00Z"
	case format == "date-time", format == "" && (has("date", "time", "when", "since", "until", "start", "end", "day") && !has("zone") || lower == "at" || lower == "from" || lower == "to" || lower == "iso"):
		return "2024-01-31T12:00:00Z"
	case format == "email", has("mail"):
		return "ada@example.com"
	case format == "uri", has("url", "link", "href"):
		return "https://example.com/"
	case format == "uuid":
		return "6f2b8a52-4d0e-4a4d-8a6f-0e6b3a3f5f10"
	case format == "duration":
		return "PT1H"
	case has("json"):
		return "{}"
	case has("zone"), lower == "tz":
		return "Europe/Berlin"
	case has("secret", "key", "password"):
		return "0123456789abcdef0123456789abcdef"
	case has("amount", "price", "number", "count"):
		return "1.5"
	default:
		return "a"
	}
}
