package extension

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

// Describe says in plain words what a binding may do, one thing a line, for the person who approves it. It says all of it,
// and is printable: hosts in other scripts are in punycode.
func Describe(b Binding) []string {
	switch g := b.Grant.(type) {
	case HTTP:
		return g.describe()
	case Workspace:
		return []string{g.Access.describe(g.where())}
	case Dir:
		return []string{g.Access.describe("the directory " + abi.PrintableLine(g.Path) + " of this machine")}
	case KV:
		return []string{"may keep small values from call to call"}
	case Clock:
		return []string{"may read the time, and wait"}
	case Random:
		return []string{"may draw random numbers"}
	case Console:
		return []string{"may write to the log"}
	case Blob:
		return []string{"may keep bytes on the host for the length of a call"}
	case Tools:
		return []string{"may call the tools of " + abi.PrintableLine(strings.Join(g.Files, ", "))}
	case Custom:
		return []string{fmt.Sprintf("may use %s, a capability of the program that embeds the host, with %s", abi.PrintableLine(g.Name), abi.PrintableLine(string(g.Config)))}
	default:
		return []string{"may do something that this version does not know"}
	}
}

func (g HTTP) describe() []string {
	var lines []string
	for _, r := range g.Rules {
		lines = append(lines, "may send "+requests(r))
	}
	for _, set := range g.Within {
		lines = append(lines, "but whatever it sends has to be one of these as well:")
		for _, r := range set {
			lines = append(lines, "  "+requests(r))
		}
	}
	return lines
}

// requests are those that fit a rule, in words.
func requests(rule http.Rule) string {
	r, err := rule.Normal()
	if err != nil {
		return "nothing, as a rule is not valid"
	}
	methods := strings.Join(r.Methods, " and ") + " requests"
	if slices.Contains(r.Methods, "*") {
		methods = "requests of every method"
	}
	var b strings.Builder
	b.WriteString(methods + " to " + where(r))
	if r.Host == "*" {
		b.WriteString(", which is every host with a public address")
	}
	if _, err := netip.ParseAddr(strings.Trim(r.Host, "[]")); err == nil {
		b.WriteString(", an address that need not be public")
	}
	if len(r.Addresses) > 0 {
		fmt.Fprintf(&b, ", also at the addresses %s", addresses(r))
	}
	if r.Scheme == "http" {
		b.WriteString(", without encryption")
	}
	if r.Credential != "" {
		fmt.Fprintf(&b, ", with the credential %s, which it does not see, as %s", r.Credential, r.As)
	}
	if len(r.Headers) > 0 {
		b.WriteString(", setting the headers " + strings.Join(r.Headers, ", "))
	}
	fmt.Fprintf(&b, ", and take in up to %s of each response", humanize.IBytes(uint64(r.MaxResponse)))
	return abi.PrintableLine(b.String())
}

func (a Access) describe(where string) string {
	if a == ReadWrite {
		return "may read, write and remove files in " + where
	}
	return "may read files in " + where
}

func (g Workspace) where() string {
	store := "its own workspace"
	if g.Store != "" {
		store = "the workspace " + g.Store
	}
	if g.Path == "/" {
		return abi.PrintableLine(store)
	}
	return abi.PrintableLine(g.Path + " of " + store)
}

// authority is what a grant may do, one piece a line, in the terms of a manifest.
func authority(g Grant) []string {
	switch g := g.(type) {
	case nil:
		return nil
	case HTTP:
		var lines []string
		for _, r := range g.Rules {
			lines = append(lines, "http "+terms(r))
		}
		for _, set := range g.Within {
			for _, r := range set {
				lines = append(lines, "only within http "+terms(r))
			}
		}
		return lines
	case Workspace:
		return []string{abi.PrintableLine(strings.TrimSpace("workspace "+g.Store) + " " + g.Path + " " + string(g.Access))}
	case Dir:
		return []string{abi.PrintableLine("dir " + g.Path + " " + string(g.Access))}
	case Tools:
		return []string{abi.PrintableLine("tools " + strings.Join(g.Files, " "))}
	case Custom:
		return []string{abi.PrintableLine(g.Name + " " + string(g.Config))}
	default:
		kind, _ := g.json()
		return []string{kind}
	}
}

func terms(rule http.Rule) string {
	r, err := rule.Normal()
	if err != nil {
		return abi.PrintableLine(rule.String())
	}
	text := strings.Join(r.Methods, ",") + " " + where(r)
	if r.Credential != "" {
		text += " with credential " + r.Credential
		if r.As != "bearer" {
			text += " as " + r.As
		}
	}
	if len(r.Headers) > 0 {
		text += " with headers " + strings.Join(r.Headers, ",")
	}
	if len(r.Addresses) > 0 {
		text += " at addresses " + addresses(r)
	}
	if rule.MaxResponse != 0 {
		text += fmt.Sprintf(" up to %d bytes", r.MaxResponse)
	}
	return abi.PrintableLine(text)
}

// where is the URL of a rule.
func where(r http.Rule) string {
	return http.Rule{Scheme: r.Scheme, Host: r.Host, Port: r.Port, Path: r.Path}.String()
}

func addresses(r http.Rule) string {
	texts := make([]string, len(r.Addresses))
	for i, prefix := range r.Addresses {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ", ")
}
