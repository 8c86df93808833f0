package openapi

import (
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

var (
	htmlTag  = lazyregexp.New(`</?[A-Za-z][^<>]{0,200}>`)
	mdLink   = lazyregexp.New(`!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)`)
	entities = strings.NewReplacer("&nbsp;", " ", "&quot;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// plainText takes the marks of HTML and the links and emphasis of Markdown out of a description: they cost the reader tokens and say nothing.
func plainText(s string) string {
	if strings.Contains(s, "<") {
		s = htmlTag.ReplaceAllString(s, " ")
	}
	if strings.Contains(s, "](") {
		s = mdLink.ReplaceAllString(s, "$1")
	}
	s = strings.ReplaceAll(s, "**", "")
	if strings.Contains(s, "&") {
		s = entities.Replace(s)
	}
	return s
}

// sentence is the first sentence of a text.
func sentence(s string) string {
	for i, c := range s {
		if (c == '.' || c == '!' || c == '?') && (i+1 == len(s) || s[i+1] == ' ') && i > 20 && !strings.HasSuffix(s[:i], " e.g") && !strings.HasSuffix(s[:i], " i.e") {
			return s[:i]
		}
	}
	return s
}
