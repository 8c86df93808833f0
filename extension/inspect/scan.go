package inspect

import (
	"strings"

	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/random"
)

const httpInterface = http.Interface

// globals are names of the environment and the interfaces they need.
var globals = map[string]string{
	"fetch": http.Interface, "console": console.Interface, "crypto": random.Interface,
	"Date": clock.Interface, "performance": clock.Interface, "setTimeout": clock.Interface, "setInterval": clock.Interface,
}

// scan looks through the tokens of a file.
type scan struct {
	*source
	*collector
	// open are the brackets around the token at hand.
	open []int
	// aliases are other names of env, each up to a token.
	aliases map[string]int
	// templates are those around the token at hand, each as the text so far with * for its holes, and where it began.
	templates []*fixedText
	// seen are names with letters of several scripts, and hexNames counts those that a program made up.
	seen     map[string]bool
	hexNames int
}

type fixedText struct {
	text strings.Builder
	at   int
}

// scan finds what a file would like to do. Of packages, env is not followed: it is what their own callers give them.
func (c *collector) scan(s *source, inner bool) {
	v := &scan{source: s, collector: c, aliases: map[string]int{envName: len(s.tokens)}, seen: map[string]bool{}}
	for i, t := range s.tokens {
		for len(v.open) > 0 && i >= s.match(v.open[len(v.open)-1]) {
			v.open = v.open[:len(v.open)-1]
		}
		switch t.kind {
		case word:
			v.word(i, inner)
		case quoted:
			v.string(i)
		case template:
			v.template(i)
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
	if !inner {
		v.env(i, name)
	}
	key := v.is(i+1, ":") && !v.is(i-1, "?") || v.member(i)
	if iface := globals[name]; iface != "" && !key {
		v.use(v.globals, iface, v.source, v.offset(i))
	} else if name == "Math" && v.is(i+1, ".") && v.is(i+2, "random") {
		v.use(v.globals, random.Interface, v.source, v.offset(i))
	}
}

// string looks at a string, together with those that are added to it.
func (v *scan) string(i int) {
	v.literal(i)
	if v.is(i-1, "+") && v.kindOf(i-2, quoted) {
		return
	}
	value, _ := v.value(i)
	if v.is(i+1, "+") && v.kindOf(i+2, quoted) {
		var b strings.Builder
		b.WriteString(value)
		for n := i + 2; v.kindOf(n, quoted) && v.is(n-1, "+"); n += 2 {
			more, _ := v.value(n)
			b.WriteString(more)
		}
		value = b.String()
	}
	v.hostsOf(value, i)
}

// template puts the fixed parts of a template together.
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
	v.hostsOf(t.text.String(), t.at)
	v.templates = v.templates[:len(v.templates)-1]
}

// hostsOf notes the hosts in a string.
func (v *scan) hostsOf(text string, i int) {
	for _, host := range hostsIn(text) {
		v.use(v.hosts, host, v.source, v.offset(i))
	}
}

// isEnvName says whether a name stands for env at token i.
func (v *scan) isEnvName(i int, name string) bool { return i < v.aliases[name] }

// env follows the bindings: who gets them under which name, and what is taken of them.
func (v *scan) env(i int, name string) {
	switch {
	case name == "run" && !v.member(i):
		v.run(i)
	case name == "Env" && v.is(i-1, ":"):
		v.typedEnv(i)
	case v.isEnvName(i, name) && !v.member(i) && !v.is(i+1, ":") && !v.is(i+1, "?"):
		v.envUse(i)
	}
}

// run looks at the second parameter of a tool's run.
func (v *scan) run(i int) {
	at := i + 1
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
	if !v.is(at, "(") {
		return
	}
	if after := v.match(at) + 1; !v.is(after, "=>") && !v.is(after, "{") && !v.is(after, ":") {
		return // a call
	}
	p := parser{module: &module{source: v.source}, i: at}
	list := p.parameters()
	if p.problem != nil {
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

// endOfBlock is the end of the brackets around the token at hand.
func (v *scan) endOfBlock() int {
	if len(v.open) == 0 {
		return len(v.tokens)
	}
	return v.match(v.open[len(v.open)-1])
}

// typedEnv looks at what is declared to be of the type Env.
func (v *scan) typedEnv(i int) {
	at := i - 2
	if v.is(at, "?") {
		at--
	}
	end := v.endOfBlock()
	if n := len(v.open); n > 0 && v.is(v.open[n-1], "(") { // the function goes on behind its parameters
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

// taken notes the bindings that a pattern such as {a, b: c} takes out of env.
func (v *scan) taken(open int) {
	end := v.match(open)
	for i := open + 1; i < end; i++ {
		name, ok := v.value(i)
		if v.isName(i) {
			name, ok = v.at(i), true
		}
		if ok {
			v.use(v.collector.env, name, v.source, v.offset(i))
		} else {
			v.elsewhere(i)
		}
		for i < end && !v.is(i, ",") {
			i = v.next(i)
		}
	}
}

// envUse looks at what is done with env.
func (v *scan) envUse(i int) {
	if v.is(i-1, "=") && v.is(i-2, "}") && v.tokens[i-2].match >= 0 {
		v.taken(int(v.tokens[i-2].match))
		return
	}
	next := i + 1
	if v.is(next, "!") {
		next++
	}
	switch {
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
