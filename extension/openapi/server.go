package openapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/internal/printable"
)

// server is where the operations are.
type server struct {
	scheme, host string
	port         uint16 // 0 is the scheme's
	prefix       string // of paths, without "/" at its end
}

func (s server) text() string {
	text := s.scheme + "://" + s.host
	if s.port != 0 {
		text += ":" + strconv.Itoa(int(s.port))
	}
	return text + s.prefix
}

const giveServer = "name the server with --server URL"

// chooseServer takes the given server, or the document's first that is an absolute URL.
func (d *document) chooseServer(given string) (server, error) {
	for _, text := range d.servers() {
		if s, problem := parseServer(text); problem == "" {
			d.own = append(d.own, s)
		}
	}
	if given != "" {
		s, problem := parseServer(given)
		if problem != "" {
			return s, &OptionError{"--server", quoted(given) + " " + problem}
		}
		return s, nil
	}
	var first error
	for i, text := range d.servers() {
		s, problem := parseServer(text)
		if problem == "" {
			return s, nil
		}
		if first == nil {
			first = &DocumentError{fmt.Sprintf("/servers/%d", i), quoted(text) + " " + problem, giveServer}
		}
	}
	if first == nil {
		first = &DocumentError{"", "the document names no server", giveServer}
	}
	return server{}, first
}

// servers are the document's servers as text, https first in Swagger 2.0, with the defaults of their variables.
func (d *document) servers() (all []string) {
	if !d.v2 {
		return d.serverTexts(d.root["servers"])
	}
	host := str(d.root["host"])
	if host == "" {
		return nil
	}
	scheme := "https"
	if schemes := list(d.root["schemes"]); len(schemes) > 0 {
		scheme = str(schemes[0])
		for _, s := range schemes {
			if str(s) == "https" {
				scheme = "https"
			}
		}
	}
	return []string{scheme + "://" + host + str(d.root["basePath"])}
}

func (d *document) serverTexts(v any) (all []string) {
	for i, item := range list(v) {
		if i == 20 {
			break
		}
		fields := object(item)
		if !d.spend(parameterWork * len(object(fields["variables"]))) {
			break
		}
		text := printable.Cut(str(fields["url"]), 2000)
		for name, variable := range object(fields["variables"]) {
			if len(text) < 4000 {
				text = strings.ReplaceAll(text, "{"+name+"}", printable.Cut(str(object(variable)["default"]), 200))
			}
		}
		all = append(all, text)
	}
	return all
}

// sameServer reports whether servers of an operation are those of the document, or the chosen one.
func (d *document) sameServer(v any) bool {
	for _, text := range d.serverTexts(v) {
		s, problem := parseServer(text)
		if problem == "" && (s == d.server || slices.Contains(d.own, s)) {
			return true
		}
		if problem != "" && strings.HasPrefix(text, "/") && strings.TrimRight(text, "/") == d.server.prefix {
			return true
		}
	}
	return false
}

// parseServer reads a URL, and says what is wrong with it.
func parseServer(text string) (s server, problem string) {
	if strings.HasPrefix(text, "//") { // it has the scheme of the document, which nobody knows
		text = "https:" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, strings.ContainsAny(text, "{}"), strings.ContainsAny(text, `\`):
		return s, "is not a URL"
	case u.Scheme == "" || u.Host == "":
		return s, "is not an absolute URL"
	case u.Scheme != "https" && u.Scheme != "http":
		return s, "is not https or http"
	case u.User != nil:
		return s, "has a user name in it"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return s, "has a query or a fragment"
	case u.Hostname() == "" || strings.ContainsAny(u.Hostname(), "* %"):
		return s, "has no plain host"
	}
	s = server{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), prefix: strings.TrimRight(u.EscapedPath(), "/")}
	if strings.Contains(s.host, ":") {
		s.host = "[" + s.host + "]"
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return s, "has no valid port"
		}
		s.port = uint16(n)
	}
	if s.prefix != "" && (!validPath(s.prefix) || strings.ContainsAny(s.prefix, "*{}")) {
		return s, "has a path that is not plain"
	}
	return s, ""
}

// rule is the one rule of the http binding.
type rule struct {
	Scheme     string   `json:"scheme,omitempty"`
	Host       string   `json:"host"`
	Port       uint16   `json:"port,omitempty"`
	Methods    []string `json:"methods"`
	Path       string   `json:"path,omitempty"`
	Headers    []string `json:"headers,omitempty"`
	Credential string   `json:"credential,omitempty"`
	As         string   `json:"as,omitempty"`
}

func (s server) rule(o Options) rule {
	r := rule{Host: s.host, Port: s.port, Credential: o.Credential, As: o.As}
	if s.scheme != "https" {
		r.Scheme = s.scheme
	}
	if s.prefix != "" {
		r.Path = s.prefix + "/**"
	}
	return r
}

// auth says how the document wants requests to be authenticated, each way once, in the document's order of names.
func (d *document) auth() (all []Auth) {
	schemes := object(object(d.root["components"])["securitySchemes"])
	if d.v2 {
		schemes = object(d.root["securityDefinitions"])
	}
	seen := map[string]bool{}
	for _, name := range d.keys(schemes, 50) {
		s, ok := d.resolve(schemes[name])
		if !ok {
			continue
		}
		as := ""
		switch strings.ToLower(str(s["type"])) {
		case "basic":
			as = "basic"
		case "oauth2", "openidconnect":
			as = "bearer"
		case "http":
			if scheme := strings.ToLower(str(s["scheme"])); scheme == "bearer" || scheme == "basic" {
				as = scheme
			}
		case "apikey":
			key := str(s["name"])
			switch where := str(s["in"]); {
			case !token(key):
			case where == "header" && strings.EqualFold(key, "authorization"):
				as = "bearer"
			case where == "header":
				as = "header:" + strings.ToLower(key)
			case where == "query":
				as = "query:" + key
			}
		}
		if as != "" && !seen[as] {
			seen[as] = true
			all = append(all, Auth{as, prose(cmp.Or(name, as), 60)})
		}
	}
	return all
}

// token reports whether s can be the name of a header.
func token(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 100
}
