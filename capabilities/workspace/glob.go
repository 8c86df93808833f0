package workspace

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/lazyregexp"
)

const (
	// maxPattern is the longest glob or regular expression, in bytes.
	maxPattern = 1024
	// maxGlobs is how many globs one list may have.
	maxGlobs = 32
	// maxCompiled is how many instructions, by estimate, a pattern may have to be compiled at all: 3 MB. It is then refused above
	// maxProgram. The estimate is up to twelve times too high.
	maxCompiled = 16 * maxProgram
	// maxGlobProgram is how many instructions all globs of one call may have when compiled. Each may be looked at for each byte of a
	// path.
	maxGlobProgram = 4096
)

// glob is a pattern for paths below a directory.
type glob struct {
	// prefix is the directory that contains all matches, without links.
	prefix  string
	pattern *regexp.Regexp // of a path without the slash in front
	program int            // instructions in pattern
}

func (g *glob) match(path string) bool { return g.pattern.MatchString(strings.TrimPrefix(path, "/")) }

// parseGlob reads a glob: `*` and `?` stand for characters other than a slash, `**` between slashes for any number of directories,
// `[a-z]` and `[!a-z]` for a character, `{a,b}` for either, and a backslash takes the next character literally. A glob without a
// slash matches the last name of a path. The glob becomes a regular expression, which no input makes slow.
func parseGlob(text string) (*glob, error) {
	fail := func(problem string) (*glob, error) {
		return nil, abi.Errorf(abi.CodeInvalid, "glob %.100q: %s", text, problem)
	}
	if len(text) > maxPattern {
		return fail("longer than 1,024 bytes")
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(text, "./"), "/")
	if rest == "" {
		return fail("empty")
	}
	var g glob
	if plain := rest[:strings.LastIndexByte(rest, '/')+1]; plain != "" {
		if i := strings.IndexAny(plain, `*?[{\`); i >= 0 {
			plain = plain[:strings.LastIndexByte(plain[:i], '/')+1]
		}
		if plain = strings.TrimSuffix(plain, "/"); plain != "" {
			g.prefix = "/" + plain
		}
		for name := range strings.SplitSeq(g.prefix, "/") {
			if name == "." || name == ".." {
				return fail(`"." or ".." in it; it matches paths below the directory as they are listed`)
			}
		}
	}
	var re strings.Builder
	re.WriteString(`(?s)\A`)
	if !strings.Contains(rest, "/") {
		re.WriteString(`(?:.*/)?`)
	}
	braces := 0
	begin := true // of a name
	for rest != "" {
		c, size := rest[0], 1
		next := false
		switch {
		case begin && strings.HasPrefix(rest, "**/"):
			re.WriteString(`(?:.*/)?`)
			for size = 3; strings.HasPrefix(rest[size:], "**/"); size += 3 { // the same again
			}
			next = true
		case begin && rest == "**":
			re.WriteString(`.+`)
			size = 2
		case c == '*':
			re.WriteString(`[^/]*`)
		case c == '?':
			re.WriteString(`[^/]`)
		case c == '{':
			braces++
			re.WriteString(`(?:`)
			next = begin
		case c == '}' && braces > 0:
			braces--
			re.WriteString(`)`)
		case c == ',' && braces > 0:
			re.WriteString(`|`)
			next = begin
		case c == '[':
			end := strings.IndexByte(rest[min(2, len(rest)):], ']') + 2
			if end < 2 {
				return fail(`a "[" without its "]"`)
			}
			class, not := rest[1:end], ""
			if class[0] == '!' || class[0] == '^' {
				class, not = class[1:], "^/"
			}
			class = "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `/`, ``).Replace(class) + "]"
			if parsed, err := syntax.Parse(class, syntax.Perl); err == nil && not == "" && parsed.Op == syntax.OpCharClass {
				class = withoutSlash(parsed.Rune) // a range may contain one
			}
			re.WriteString(class)
			size = end + 1
		case c == '\\':
			if len(rest) == 1 {
				return fail("a backslash at the end")
			}
			size = 2
			re.WriteString(regexp.QuoteMeta(rest[1:2]))
		default:
			for size < len(rest) && rest[size] >= 0x80 {
				size++ // the rest of a character that is not ASCII
			}
			re.WriteString(regexp.QuoteMeta(rest[:size]))
			next = c == '/'
		}
		rest, begin = rest[size:], next
	}
	if braces > 0 {
		return fail(`a "{" without its "}"`)
	}
	re.WriteString(`\z`)
	var err error
	if g.pattern, g.program, err = compile(re.String()); err != nil {
		return fail("a range or nesting that the search does not support")
	}
	return &g, nil
}

// compile compiles a regular expression and counts its instructions. Matching takes at most that many steps per byte. It refuses an
// expression that would take much memory to compile.
func compile(text string) (*regexp.Regexp, int, error) {
	parsed, _, err := lazyregexp.Parse(text, maxCompiled)
	if err != nil {
		return nil, 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, err
	}
	pattern, err := regexp.Compile(text)
	return pattern, len(program.Inst), err
}

// withoutSlash returns a class of the characters from the first to the
// second, from the third to the fourth and so on, without the slash.
func withoutSlash(ranges []rune) string {
	var class strings.Builder
	for pair := range slices.Chunk(ranges, 2) {
		if from, to := pair[0], min(pair[1], '/'-1); from <= to {
			fmt.Fprintf(&class, `\x{%x}-\x{%x}`, from, to)
		}
		if from, to := max(pair[0], '/'+1), pair[1]; from <= to {
			fmt.Fprintf(&class, `\x{%x}-\x{%x}`, from, to)
		}
	}
	return "[" + class.String() + "]"
}

// globs are patterns. A path must match one of them.
type globs struct {
	all     []*glob
	program int // instructions in all together
}

func (d *Directory) globs(texts ...string) (globs, error) {
	var g globs
	if len(texts) > maxGlobs {
		return g, abi.Errorf(abi.CodeInvalid, "%d globs; at most %d", len(texts), maxGlobs)
	}
	for _, text := range texts {
		if len(text) > maxPattern {
			return g, abi.Errorf(abi.CodeInvalid, "glob %.100q: longer than 1,024 bytes", text)
		}
		one, err := parseGlob(d.normal(text))
		if err != nil {
			return g, err
		}
		g.all = append(g.all, one)
		g.program += one.program
	}
	return g, nil
}

// checkGlobs bounds the cost of matching a path with all globs of a call.
func checkGlobs(of ...globs) error {
	program := 0
	for _, g := range of {
		program += g.program
	}
	if program > maxGlobProgram {
		return abi.Errorf(abi.CodeInvalid, "the globs have %d instructions together when compiled; at most %d: use fewer, or shorter ones", program, maxGlobProgram)
	}
	return nil
}

func (g globs) match(path string) bool {
	return slices.ContainsFunc(g.all, func(one *glob) bool { return one.match(path) })
}
