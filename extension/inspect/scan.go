package inspect

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jslex"
)

// globals are names of the environment and the interfaces they need.
func globals(kinds capability.Set) map[string]string {
	all := map[string]string{}
	for _, k := range kinds.All() {
		for _, name := range k.Globals {
			all[name] = k.Interface
		}
	}
	return all
}

// boundGlobals are the interfaces whose globals use the binding of one name, with that name.
func boundGlobals(kinds capability.Set) map[string]string {
	all := map[string]string{}
	for _, k := range kinds.All() {
		if k.GlobalBinding != "" {
			all[k.Interface] = k.GlobalBinding
		}
	}
	return all
}

// scan goes through the tokens of a file.
type scan struct {
	*source
	*collector
	// open are the brackets around the current token.
	open []int
	// aliases are other names of env, each up to a token.
	aliases map[string]int
	// templates are the templates around the current token: the text so far, with * for holes, and where each began.
	templates []*fixedText
	// seen are names with letters of several scripts. hexNames counts those that a program generated.
	seen     map[string]bool
	hexNames int
}

type fixedText struct {
	text strings.Builder
	at   int
}

// scan finds what a file appears to do. It does not follow env in packages, because their callers decide what env is.
func (c *collector) scan(s *source, inner bool) {
	v := &scan{source: s, collector: c, aliases: map[string]int{envName: len(s.tokens)}, seen: map[string]bool{}}
	for i, t := range s.tokens {
		for len(v.open) > 0 && i >= s.match(v.open[len(v.open)-1]) {
			v.open = v.open[:len(v.open)-1]
		}
		switch t.kind {
		case jslex.Word:
			v.word(i, inner)
		case jslex.String:
			v.literal(i)
			v.string(i, inner)
		case jslex.Template:
			if v.isText(i) {
				v.string(i, inner)
			} else {
				v.template(i)
			}
		default:
		}
		if s.opens(i) {
			v.open = append(v.open, i)
		}
	}
	v.characters()
	v.longLines()
}

func (v *scan) word(i int, inner bool) {
	name := v.at(i)
	v.name(i, name)
	if strings.Contains(name, `\`) {
		name, _ = unescape(name)
	}
	v.eval(i, name)
	if v.faults != nil {
		v.fault(i, name)
	}
	if !inner {
		v.env(i, name)
	}
	if name == globalName && !v.isKey(i) {
		v.globalThis(i, inner)
	}
	if !v.isKey(i) || v.ofGlobal(i) {
		v.global(i, name)
	}
	if v.is(i+1, ".") && i+2 < len(v.tokens) {
		if iface := v.needs[name+"."+v.at(i+2)]; iface != "" {
			v.use(v.globals, iface, v.source, v.offset(i))
		}
	}
}

// isKey reports whether a word is the name of a property.
func (v *scan) isKey(i int) bool { return v.is(i+1, ":") && !v.is(i-1, "?") || v.member(i) }

// globalName is the name of the object with the globals.
const globalName = "globalThis"

// ofGlobal reports whether token i is the name of a global, as in globalThis.a.
func (v *scan) ofGlobal(i int) bool {
	return v.member(i) && v.is(i-2, globalName) && !v.member(i-2)
}

// global notes the use of a global.
func (v *scan) global(i int, name string) {
	if iface := v.needs[name]; iface != "" && !v.isData(i) && (v.member(i) || !v.isOwn(i, name)) {
		v.use(v.globals, iface, v.source, v.offset(i))
	}
}

// isOwn reports whether token i is not the global of its name: it is the name of a method or a function, a variable that is declared here, or a
// parameter of a function around it.
func (v *scan) isOwn(i int, name string) bool {
	if body := v.next(i + 1); v.is(i+1, "(") && v.is(body, "{") && !v.newline(body) {
		return true
	}
	switch v.at(i - 1) {
	case "const", "let", "var", "function":
		return true
	case "(", ",":
		if len(v.open) == 0 {
			return false
		}
		list := v.open[len(v.open)-1]
		if after := v.next(list); v.is(list, "(") && (v.is(after, "=>") || v.is(after, "{") && !v.newline(after)) && v.hasParameter(list, name) {
			return true
		}
	}
	for n, open := range slices.Backward(v.open) {
		if len(v.open)-n > maxScopes {
			return false
		}
		end := open - 1
		if v.is(end, "=>") {
			end--
		}
		if v.is(open, "{") && v.is(end, ")") && v.hasParameter(int(v.tokens[end].match), name) {
			return true
		}
	}
	return false
}

// maxScopes is how many brackets around a name isOwn looks at.
const maxScopes = 50

// hasParameter reports whether a list of parameters has one of a name, by itself. The list begins at token open.
func (v *scan) hasParameter(open int, name string) bool {
	end := v.match(open)
	if end == len(v.tokens) || slices.Contains([]string{"if", "for", "while", "switch", "with"}, v.at(open-1)) {
		return false
	}
	for at, n := open+1, 0; at < end && n < maxParameters; n++ {
		if v.isName(at) && v.at(at) == name {
			return true
		}
		for at < end && !v.is(at, ",") {
			at = v.next(at)
		}
		at++
	}
	return false
}

// isData reports whether a call is given a data: URL, which needs no binding.
func (v *scan) isData(i int) bool {
	if !v.is(i+1, "(") || !v.isText(i+2) && !v.kindOf(i+2, jslex.Template) {
		return false
	}
	return strings.HasPrefix(strings.ToLower(v.at(i + 2)[1:]), "data:")
}

// globalThis examines a use of globalThis in which the global's name is not a plain word, or is missing.
func (v *scan) globalThis(i int, inner bool) {
	note := func(what string) { v.note(&v.report.Eval, v.offset(i), globalName+" "+what) }
	next := i + 1
	if v.is(next, "?.") && v.is(next+1, "[") {
		next++
	}
	name, end := v.joined(next + 1)
	switch {
	case v.is(next, ".") || v.is(next, "?.") || v.is(i-1, "typeof"):
	case v.is(next, "[") && end > next+1 && v.is(end, "]"):
		v.globalText(next+1, name)
	case v.is(next, "["):
		note("with a name that is computed")
	case v.assigned(i):
		v.names(int(v.tokens[i-2].match), func(i int, name string) {
			if v.is(i+1, ":") { // other names are found as words
				v.globalText(i, name)
			}
		}, func(int) { note("with a name that is computed") })
	case !inner:
		note("as a whole, with eval and Function")
	}
}

// globalText looks at a global that is named by text.
func (v *scan) globalText(i int, name string) {
	switch name {
	case "eval":
		v.note(&v.report.Eval, v.offset(i), "eval")
	case "Function":
		v.note(&v.report.Eval, v.offset(i), signFunction)
	}
	v.global(i, name)
}

// isText reports whether token i is a string, or a template without holes.
func (v *scan) isText(i int) bool {
	return v.kindOf(i, jslex.String) || v.kindOf(i, jslex.Template) && v.at(i)[0] == '`' && !v.opens(i)
}

// joined returns the text of the strings that are concatenated from token i on, and the token after them. That is i itself if there
// are none.
func (v *scan) joined(i int) (text string, next int) {
	if !v.isText(i) {
		return "", i
	}
	text, _ = v.value(i)
	if !v.is(i+1, "+") || !v.isText(i+2) {
		return text, i + 1
	}
	var b strings.Builder
	b.WriteString(text)
	for i++; v.is(i, "+") && v.isText(i+1); i += 2 {
		more, _ := v.value(i + 1)
		b.WriteString(more)
	}
	return b.String(), i
}

// string examines a string, together with the strings concatenated to it.
func (v *scan) string(i int, inner bool) {
	if v.is(i-1, "+") && v.isText(i-2) {
		return
	}
	value, next := v.joined(i)
	inBrackets := v.is(i-1, "[") && v.is(next, "]")
	switch {
	case value == "constructor" && inBrackets && (v.is(next+1, "(") || v.is(next+1, "[")):
		v.note(&v.report.Eval, v.offset(i), signConstructor)
	case value == "run" && inBrackets && !inner:
		v.open = v.open[:len(v.open)-1] // nothing else is between them
		v.run(next)
	case value == "run" && (v.is(i-1, "{") || v.is(i-1, ",")) && !inner:
		v.run(i)
	}
	v.hostsOf(value, v.is(next, "+"), i)
}

// template joins the fixed parts of a template.
func (v *scan) template(i int) {
	text := v.at(i)
	if text[0] == '`' {
		v.templates = append(v.templates, &fixedText{at: i})
	}
	if len(v.templates) == 0 {
		return
	}
	t := v.templates[len(v.templates)-1]
	inner := text[1:]
	if hole := v.opens(i) && strings.HasSuffix(inner, "${"); hole {
		inner = strings.TrimSuffix(inner, "${")
		value, _ := unescape(inner)
		t.text.WriteString(value + "*")
		return
	}
	value, _ := unescape(strings.TrimSuffix(inner, "`"))
	t.text.WriteString(value)
	v.hostsOf(t.text.String(), false, t.at)
	v.templates = v.templates[:len(v.templates)-1]
}

// hostsOf notes the hosts in a string. more is set if something computed is appended to it.
func (v *scan) hostsOf(text string, more bool, i int) {
	for _, host := range hostsIn(text, more) {
		v.use(v.hosts, host, v.source, v.offset(i))
	}
}

// isEnvName reports whether a name means env at token i.
func (v *scan) isEnvName(i int, name string) bool { return i < v.aliases[name] }

// env follows the bindings: the names under which they are passed on, and what the code takes from them.
func (v *scan) env(i int, name string) {
	switch {
	case name == "run" && !v.member(i):
		v.run(i)
	case name == "Env" && v.is(i-1, ":"):
		v.typedEnv(i)
	case v.isEnvName(i, name) && !v.isKey(i) && !v.is(i+1, "?"):
		v.envUse(i)
	case name == "arguments" && !v.isKey(i):
		v.elsewhere(i)
	}
}

// run examines the second parameter of a tool's run, whose name ends with token i.
func (v *scan) run(i int) {
	at, isProperty := i+1, v.is(i+1, ":") && !v.is(i-1, "?")
	if v.is(at, ":") || v.is(at, "=") {
		at++
	}
	if v.is(at, "async") {
		at++
	}
	if v.is(at, "function") {
		if at++; v.isName(at) {
			at++
		}
	}
	after := v.next(at)
	switch {
	case v.is(at, "(") && (v.is(after, "=>") || v.is(after, "{") || v.is(after, ":")):
	case isProperty && !v.kindOf(at, jslex.Number) && !v.kindOf(at, jslex.String) && !v.is(at, "true") && !v.is(at, "false") && !v.is(after, "=>"):
		v.elsewhere(i)
		return
	default:
		return // a call
	}
	p := parser{module: &module{source: v.source}, i: at}
	list := p.parameters()
	if p.problem != nil || slices.ContainsFunc(list[:min(len(list), 2)], func(p parameter) bool { return p.rest }) {
		v.elsewhere(i)
	} else if len(list) > 1 {
		v.parameter(list[1].at, list[1].name, v.endOfBlock())
	}
}

// parameter notes that a parameter gets env, up to token end.
func (v *scan) parameter(i int, name string, end int) {
	if name == "" {
		v.taken(i)
	} else if name != envName {
		v.aliases[name] = max(v.aliases[name], end)
	}
}

// endOfBlock returns the end of the brackets around the current token.
func (v *scan) endOfBlock() int {
	if len(v.open) == 0 {
		return len(v.tokens)
	}
	return v.match(v.open[len(v.open)-1])
}

// typedEnv looks for declarations of the type Env.
func (v *scan) typedEnv(i int) {
	at := i - 2
	if v.is(at, "?") {
		at--
	}
	end := v.endOfBlock()
	if n := len(v.open); n > 0 && v.is(v.open[n-1], "(") { // the function continues after its parameters
		if end = len(v.tokens); n > 1 {
			end = v.match(v.open[n-2])
		}
	}
	if v.is(at, "}") && v.tokens[at].match >= 0 {
		v.taken(int(v.tokens[at].match))
	} else if v.isName(at) {
		v.parameter(at, v.at(at), end)
	}
}

// assigned reports whether token i is the value that a pattern in braces destructures, as in {a} = b.
func (v *scan) assigned(i int) bool {
	return v.is(i-1, "=") && v.is(i-2, "}") && v.tokens[i-2].match >= 0
}

// taken notes the bindings that a pattern such as {a, b: c} takes from env.
func (v *scan) taken(open int) {
	v.names(open, func(i int, name string) { v.use(v.collector.env, name, v.source, v.offset(i)) }, v.elsewhere)
}

// names finds the names in a pattern, and places with something else.
func (v *scan) names(open int, found func(i int, name string), unknown func(i int)) {
	end := v.match(open)
	for i := open + 1; i < end; i++ {
		name, ok := v.value(i)
		if v.isName(i) {
			name, ok = v.at(i), true
		}
		if ok {
			found(i, name)
		} else {
			unknown(i)
		}
		for i < end && !v.is(i, ",") {
			i = v.next(i)
		}
	}
}

// envUse examines a use of env.
func (v *scan) envUse(i int) {
	next := i + 1
	if v.is(next, "!") {
		next++
	}
	switch {
	case v.assigned(i) && !v.is(next, ".") && !v.is(next, "?.") && !v.is(next, "["):
		v.taken(int(v.tokens[i-2].match))
		return
	case (v.is(next, ".") || v.is(next, "?.")) && v.isName(next+1):
		v.use(v.collector.env, v.at(next+1), v.source, v.offset(next+1))
		return
	case v.is(next, "?.") && v.is(next+1, "["):
		next++
	}
	if v.is(next, "[") {
		if name, ok := v.value(next + 1); ok && v.is(next+2, "]") {
			v.use(v.collector.env, name, v.source, v.offset(next+1))
			return
		}
	} else if n := len(v.open); n > 0 && v.is(v.open[n-1], "(") {
		if after := v.match(v.open[n-1]) + 1; v.is(after, "=>") || v.is(after, "{") || v.is(after, ":") {
			return // a parameter
		}
	}
	v.elsewhere(i)
}

func (v *scan) elsewhere(i int) {
	if len(v.report.EnvElsewhere) >= maxSigns {
		v.report.Omitted++
		return
	}
	v.report.EnvElsewhere = append(v.report.EnvElsewhere, v.place(v.offset(i)))
}
