package openapi

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sha256hex"
)

const maxExtensionName = 32 // so that tools have names of their own

// words splits a name at changes of case, and at all that is no letter or digit of ASCII.
func words(s string) (all []string) {
	runes := []rune(s)
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	for i, r := range runes {
		switch {
		case r >= utf8Self, !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0:
			before, after := runes[i-1], rune(0)
			if i+1 < len(runes) {
				after = runes[i+1]
			}
			// createPR, createPRs and PRNumber each begin a word at P, and the last one at N.
			if unicode.IsLower(before) || unicode.IsDigit(before) || unicode.IsUpper(before) && unicode.IsLower(after) && !plural(runes[i:]) {
				end()
			}
		}
		word.WriteRune(r)
	}
	end()
	return all
}

const utf8Self = 0x80

// plural reports whether an upper-case letter with an s ends a word, as in PRs.
func plural(rest []rune) bool {
	return len(rest) >= 2 && rest[1] == 's' && (len(rest) == 2 || !unicode.IsLower(rest[2]))
}

// extensionName makes the name of an extension of a title.
func extensionName(title string) string {
	var kept []string
	for _, w := range strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		switch w {
		case "api", "apis", "rest", "the", "openapi", "swagger", "specification", "v1", "v2", "v3", "v4", "reference", "documentation":
			continue
		}
		kept = append(kept, w)
	}
	name := strings.Join(kept, "-")
	if name == "" || name[0] < 'a' || extension.Reserved(extension.ToolName(name, "x")) {
		name = strings.TrimRight("api-"+name, "-")
	}
	for len(name) > maxExtensionName {
		at := strings.LastIndexByte(name, '-')
		if at < 1 {
			name = name[:maxExtensionName]
			break
		}
		name = name[:at]
	}
	return strings.Trim(name, "-")
}

// toolName makes the name of a tool of at most most bytes. A longer one loses words in its middle, because its first and last words say
// most, and ends in a digest of all that it was made of, so that it does not depend on other operations.
func toolName(id string, most int) string {
	all := words(id)
	if len(all) > 0 && (all[0][0] < 'a' || all[0][0] > 'z') {
		all = append([]string{"op"}, all...)
	}
	name := strings.Join(all, "_")
	if len(name) <= most {
		return name
	}
	digest := "_" + sha256hex.Of([]byte(id))[:4]
	head, tail := all[0], ""
	for i := len(all) - 1; i > 0 && len(head)+len(tail)+len(all[i])+1+len(digest) <= most; i-- {
		tail = "_" + all[i] + tail
	}
	name = head + tail
	return strings.TrimRight(name[:min(len(name), most-len(digest))], "_") + digest
}

// names gives each tool a name of its own.
type names struct {
	taken map[string]bool
	next  map[string]int // the number to try next, by what can stand before it
	most  int
}

// maxNumber is how many bytes a number takes at the end of a name, with what is before it, for as many operations as a document can have.
const maxNumber = len("_10000000")

func newNames(most int) *names { return &names{map[string]bool{}, map[string]int{}, most} }

func (n *names) of(o *operation) string {
	name := toolName(o.id, n.most)
	if name == "" {
		name = toolName(strings.ToLower(o.Method)+" "+o.Path, n.most)
	}
	if n.taken[name] { // the second of two operations, in the order of paths and methods
		base := name
		key := base[:min(len(base), n.most-maxNumber)]
		i := max(2, n.next[key])
		for ; n.taken[name]; i++ {
			end := fmt.Sprintf("_%d", i)
			name = strings.TrimRight(base[:min(len(base), n.most-len(end))], "_") + end
		}
		n.next[key] = i
	}
	n.taken[name] = true
	return name
}
