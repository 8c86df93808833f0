package toolchain

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/internal/jslex"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/printable"
)

// Packages are written for several environments, and import what they use in one of them only. So in code of packages, these imports fail when
// they run instead of when they are bundled:
//
//   - require and import() of what is not there, as a call that throws or a promise that is rejected;
//   - import statements and unguarded require of a module of node's without a shim, as a module whose parts throw when they are called;
//   - require and import() of a computed name.
//
// Top-level code that runs into one throws while the image is made, which is a problem of the draft. The source's own code imports nothing that
// is not there, except a package by require within try, and with Source.Absent.

// The codes of errors that a missing module has in Node.js, for which packages ask before they do without it.
const (
	requireNotFound = "MODULE_NOT_FOUND"
	importNotFound  = "ERR_MODULE_NOT_FOUND"
)

// absentModule stands for what is not there.
type absentModule struct {
	name    string // as it is imported
	partial bool   // for Source.Absent: calls give more of it, so that top-level code goes on
	reason  string
	thrown  string // the error's code if it is thrown when it is loaded, rather than when it is used
}

// leaves reports whether a file may import what is not there.
func (b *bundler) leaves(importer string) bool { return b.source.Absent || npmspec.InPackage(importer) }

// absent returns what stands for an import that was not resolved. It returns false if the import is a problem of the build.
func (b *bundler) absent(args api.OnResolveArgs, err error) (api.OnResolveResult, bool) {
	if b.ctx.Err() != nil {
		return api.OnResolveResult{}, false
	}
	m := absentModule{name: args.Path, partial: b.source.Absent, reason: printable.OneLine(err.Error())}
	_, builtin := Builtin(args.Path)
	switch args.Kind {
	case api.ResolveJSImportStatement:
		if !builtin && !b.source.Absent {
			return api.OnResolveResult{}, false
		}
	case api.ResolveJSRequireCall:
		if !builtin && !b.source.Absent || b.isGuarded(args) {
			m.thrown = requireNotFound
		}
	case api.ResolveJSDynamicImport:
		m.thrown = importNotFound
	case api.ResolveJSRequireResolve:
		return api.OnResolveResult{Path: args.Path, External: true}, true
	default:
		return api.OnResolveResult{}, false
	}
	name := "use of " + args.Path
	if m.thrown != "" {
		name = m.thrown + " of " + args.Path
	}
	return api.OnResolveResult{Path: name, Namespace: inAbsent, PluginData: m, SideEffects: api.SideEffectsFalse}, true
}

// code is the module. What it gives out is a function whose properties are functions like it, because code reads them long before it calls them,
// or extends them. It has the names of the module, because code copies all of them, and those of data have their values. "default" and __esModule are
// left to the bundler.
func (m absentModule) code() string {
	reason, err := json.Marshal(m.reason)
	if err != nil { // a string has no error
		reason = []byte(`"it is not available"`)
	}
	if m.thrown != "" {
		return "throw Object.assign(new Error(" + string(reason) + "), { code: \"" + m.thrown + "\" });\nmodule.exports = {};"
	}
	if m.partial {
		return partialModule
	}
	data, names, only, err := absentNames(m.name)
	if err != nil {
		data, names = "{}", "[]"
	}
	if only {
		return "module.exports = " + data + ";"
	}
	return "const reason = " + string(reason) + ", data = " + data + ", names = " + names + `;
const part = (path) => {
  const fail = () => { throw new Error(reason + (path && "; the package uses its " + path)); };
  const target = function () {};
  if (!path) {
    for (const name of names) target[name] = part(name);
    Object.assign(target, data);
  }
  const get = (target, key) => key === "prototype" || !path && Object.hasOwn(data, key) ? target[key] : typeof key === "symbol" || key === "__esModule" ? undefined : part(path ? path + "." + key : key);
  const base = new Proxy(Object.create(null), { get });
  return new Proxy(target, { get, apply: fail, construct: fail, getPrototypeOf: () => base });
};
module.exports = part("");`
}

// partialModule stands for a module that is not there in a source with Absent. What is made of it is no JSON, so no schema has a part that is not known.
const partialModule = `const fail = () => { throw new Error("a part of this is not there"); };
const get = (target, key) => key === "toJSON" ? fail : key === "prototype" ? target.prototype : typeof key === "symbol" || key === "__esModule" || key === "then" ? undefined : part;
const base = new Proxy(Object.create(null), { get });
const part = new Proxy(function () {}, { get, apply: () => part, construct: () => part, getPrototypeOf: () => base });
module.exports = part;`

// The names that stand for import and require in calls of computed names. They are as long, so that places in the code stay as they are.
const (
	importLater  = "__imp0"
	requireLater = "__requ0"
)

// The names that stand for process.versions.node.split and the like in code that reads the version of Node.js without asking whether there is one.
// It gets that of the oldest one that is maintained. Code that asks gets undefined.
const (
	splitVersion = "__splitver0"
	matchVersion = "__matchver0"
	nodeVersion  = "20.0.0"
)

// laterName is the name of laterCode as a module.
const laterName = "later"

// laterCode defines them, for the bundler to add where they are used.
const laterCode = `const computed = (call, name, code) => Object.assign(new Error(call + "(" + JSON.stringify(String(name)) + "): this name is computed when the code runs, and only what is written as a string is bundled"), { code });
const imported = async (name) => { throw computed("import", name, "` + importNotFound + `"); };
const required = (name) => { throw computed("require", name, "` + requireNotFound + `"); };
const split = (...args) => "` + nodeVersion + `".split(...args), match = (...args) => "` + nodeVersion + `".match(...args);
export { imported as ` + importLater + `, required as ` + requireLater + `, split as ` + splitVersion + `, match as ` + matchVersion + ` };
`

// ownRequire matches how a module makes a require of its own, by the name that the bundler knows.
var ownRequire = lazyregexp.New(`\b(?:const|let|var)\s+require\s*=\s*(?:[\w$]+\.)?createRequire\(\s*import\.meta\.url\s*\)[ \t]*;?`)

// plainRequire leaves out such a require, so that the bundler reads its calls. Places in the code stay as they are.
func plainRequire(text string) string {
	if !strings.Contains(text, "createRequire") {
		return text
	}
	return ownRequire.ReplaceAllStringFunc(text, func(made string) string {
		return ";" + strings.Map(func(c rune) rune {
			if c == '\n' || c == '\r' {
				return c
			}
			return ' '
		}, made[1:])
	})
}

// failLater rewrites calls of import and require that cannot be bundled, so that they fail when they run. It returns the problems that it
// cannot place.
func failLater(text string, problems []api.Message) (string, []api.Message) {
	if len(problems) == 0 {
		return text, nil
	}
	var lines []int // where they begin
	for at := range len(text) + 1 {
		if at == 0 || endsLine(text, at) {
			lines = append(lines, at)
		}
	}
	out := []byte(text)
	left := slices.DeleteFunc(slices.Clone(problems), func(m api.Message) bool {
		if m.Location == nil || m.Location.Line < 1 || m.Location.Line > len(lines) {
			return false
		}
		at := lines[m.Location.Line-1] + m.Location.Column
		for name, later := range map[string]string{"import": importLater, "require": requireLater} {
			if at >= 0 && strings.HasPrefix(text[min(at, len(text)):], name) {
				copy(out[at:], later)
				return true
			}
		}
		return false
	})
	return string(out), left
}

// endsLine reports whether a line ends before at, as esbuild counts lines.
func endsLine(text string, at int) bool {
	before := text[:at]
	return strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "\r") && !strings.HasPrefix(text[at:], "\n") ||
		strings.HasSuffix(before, "\u2028") || strings.HasSuffix(before, "\u2029")
}

// noteGuards finds what a file requires within try. Where its tokens are unclear, the rest counts as unguarded.
func (b *bundler) noteGuards(name, text string) {
	if !strings.Contains(text, "require") || !strings.Contains(text, "try") {
		return
	}
	guarded := make(map[string]bool)
	l := jslex.New(text, false)
	var tries []bool // by open bracket
	within := 0      // of them
	var last [3]string
	for {
		t, more := l.Next()
		if !more || l.Doubt != "" {
			break
		}
		if t.Kind == jslex.Comment {
			continue
		}
		word := text[t.Start:t.End]
		if t.Closes && len(tries) > 0 {
			if tries[len(tries)-1] {
				within--
			}
			tries = tries[:len(tries)-1]
		}
		if t.Opens {
			try := word == "{" && last[2] == "try"
			if try {
				within++
			}
			tries = append(tries, try)
		}
		if t.Kind == jslex.String && within > 0 && last[2] == "(" && last[1] == "require" && last[0] != "." {
			guarded[strings.Trim(word, `"'`)] = true
		}
		last = [3]string{last[1], last[2], word}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.guarded[name] = guarded
}

// isGuarded reports whether noteGuards has seen a require within try.
func (b *bundler) isGuarded(args api.OnResolveArgs) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.guarded[args.Importer][args.Path]
}
