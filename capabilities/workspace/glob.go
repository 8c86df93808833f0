package workspace

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

const (
	// maxPattern is the most bytes in a glob or a regular expression.
	maxPattern = 1024
	// maxGlobs is the most globs in one list.
	maxGlobs = 32
)

// glob is a pattern for paths below a directory.
type glob struct {
	// prefix is the directory that all matches are below, without links.
	prefix  string
	pattern *regexp.Regexp // of a path without the slash in front
}

func (g *glob) match(path string) bool { return g.pattern.MatchString(strings.TrimPrefix(path, "/")) }

// parseGlob reads a glob: `*` and `?` stand for characters other than a slash, `**` between slashes for any number of
// directories, `[a-z]` and `[!a-z]` for a character, `{a,b}` for either, and a backslash takes the next character as it is.
// A glob without a slash matches the last name of a path. It becomes a regular expression, which no input makes slow.
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
			size, next = 3, true
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
				class = withoutSlash(parsed.Rune) // a range may have one
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
	pattern, err := regexp.Compile(re.String())
	if err != nil {
		return fail("a range or a nesting that is not to be had")
	}
	g.pattern = pattern
	return &g, nil
}

// withoutSlash is a class of the characters from the first to the second, from the third to the fourth and so on, but for a slash.
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

// globs are patterns of which one must match.
type globs []*glob

func (d *Directory) globs(texts []string) (globs, error) {
	if len(texts) > maxGlobs {
		return nil, abi.Errorf(abi.CodeInvalid, "%d globs; at most %d", len(texts), maxGlobs)
	}
	var all globs
	for _, text := range texts {
		g, err := parseGlob(d.normal(text))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (all globs) match(path string) bool {
	for _, g := range all {
		if g.match(path) {
			return true
		}
	}
	return false
}
