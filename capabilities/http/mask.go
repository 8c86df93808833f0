package http

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

// secrets are the forms in which servers are known to echo what was sent to them. Each is covered with asterisks, as many
// as it has bytes, so that lengths and offsets stay true.
type secrets [][]byte

// with adds the forms of a value: as it is, percent-encoded, in JSON, in HTML, and in base64.
func (s secrets) with(value string) secrets {
	quoted, _ := json.Marshal(value) // of a string, never fails
	forms := []string{
		value, url.QueryEscape(value), url.PathEscape(value), string(quoted[1 : len(quoted)-1]),
		base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
	for _, spelling := range spellings {
		forms = append(forms, spelling.Replace(value))
	}
	for _, plain := range []string{"/", "!'()*", "!'()*;,/?:@&=+$#"} { // Python; encodeURIComponent and encodeURI of JavaScript
		var form strings.Builder
		for _, c := range []byte(value) {
			writeEncoded(&form, c, strings.IndexByte(plain, c) >= 0)
		}
		forms = append(forms, form.String())
	}
	for _, form := range slices.Clone(forms) {
		forms = append(forms, encoded.ReplaceAllStringFunc(form, strings.ToLower))
	}
	made := slices.Clone(s)
	for _, form := range forms {
		if len(form) >= minSecret && !slices.ContainsFunc(made, func(have []byte) bool { return string(have) == form }) {
			made = append(made, []byte(form))
		}
	}
	return made
}

var encoded = regexp.MustCompile(`%[0-9A-F]{2}|\\u[0-9A-F]{4}|&#x[0-9A-F]{2};`)

// spellings are those of JSON and of HTML, as encoders differ in what they escape.
var spellings = func() []*strings.Replacer {
	all := []*strings.Replacer{
		strings.NewReplacer(`\`, `\\`, `"`, `\"`),
		// PHP
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, `/`, `\/`),
		// Gson
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, `<`, `\u003C`, `>`, `\u003E`, `&`, `\u0026`, `=`, `\u003D`, `'`, `\u0027`),
		// System.Text.Json
		strings.NewReplacer(`\`, `\\`, `"`, `\u0022`, `<`, `\u003C`, `>`, `\u003E`, `&`, `\u0026`, `+`, `\u002B`, `'`, `\u0027`, "`", `\u0060`),
	}
	for _, quote := range []string{"&#34;", "&quot;"} {
		for _, apostrophe := range []string{"&#39;", "&#039;", "&#x27;", "&apos;", "'"} {
			pairs := []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quote, "'", apostrophe}
			handlebars := append(slices.Clone(pairs), "=", "&#x3D;", "`", "&#x60;")
			mustache := append(slices.Clone(handlebars), "/", "&#x2F;")
			all = append(all, strings.NewReplacer(pairs...), strings.NewReplacer(handlebars...), strings.NewReplacer(mustache...))
		}
	}
	return all
}()

// cover overwrites in shown, a copy of the start of data, every form that starts there. It returns where the last one ends
// in data.
func (s secrets) cover(shown, data []byte) (end int) {
	for _, form := range s {
		// Occurrences may overlap, so the search goes on one byte further.
		for from := 0; ; from++ {
			i := bytes.Index(data[from:], form)
			if i < 0 || from+i >= len(shown) {
				break
			}
			from += i
			asterisks(shown[from:min(from+len(form), len(shown))])
			end = max(end, from+len(form))
		}
	}
	return end
}

func asterisks(p []byte) {
	for i := range p {
		p[i] = '*'
	}
}

// mask returns text without the secrets.
func (s secrets) mask(text string) string {
	if len(s) == 0 {
		return text
	}
	shown := []byte(text)
	s.cover(shown, []byte(text))
	return string(shown)
}

// hush masks what the guest is told of a failure: net/http quotes what servers send.
func (s secrets) hush(err *abi.Error) error {
	told := *err
	told.Detail = s.mask(err.Detail)
	return &told
}

// clean removes from where a server redirects the secrets that its encoding would have hidden from mask.
func (s secrets) clean(t *target) (*target, error) {
	if len(s) == 0 {
		return t, nil
	}
	kept := slices.DeleteFunc(strings.Split(t.query, "&"), func(part string) bool {
		decoded := unescape(strings.ReplaceAll(part, "+", " "))
		return s.mask(decoded) != decoded
	})
	made := *t
	made.query = strings.Join(kept, "&")
	return parseTarget(s.mask(made.String()))
}

// maskReader reads from r without the secrets. It keeps back only what could be the beginning of one.
type maskReader struct {
	r       io.Reader
	secrets secrets
	data    []byte // read and not shown yet
	covered int    // so many bytes of data are the rest of a secret that began before
	shown   []byte // to be returned
	err     error
}

func (m *maskReader) Read(p []byte) (int, error) {
	for len(m.shown) == 0 && m.err == nil {
		m.fill()
	}
	n := copy(p, m.shown)
	m.shown = m.shown[n:]
	if n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

func (m *maskReader) fill() {
	start := len(m.data)
	m.data = slices.Grow(m.data, 32<<10)
	n, err := m.r.Read(m.data[start:cap(m.data)])
	m.data, m.err = m.data[:start+n], err
	ready := len(m.data)
	// Where a response is cut off, the beginning of a secret stays hidden; where it ends, it is none.
	if !errors.Is(err, io.EOF) {
		ready -= m.secrets.begun(m.data)
	}
	m.shown = slices.Clone(m.data[:ready])
	asterisks(m.shown[:min(m.covered, ready)])
	m.covered = max(0, m.covered-ready, m.secrets.cover(m.shown, m.data)-ready)
	m.data = append(m.data[:0], m.data[ready:]...)
}

// begun returns the length of the longest end of data with which a secret begins.
func (s secrets) begun(data []byte) (longest int) {
	for _, form := range s {
		for n := min(len(form)-1, len(data)); n > longest; n-- {
			if bytes.HasPrefix(form, data[len(data)-n:]) {
				longest = n
			}
		}
	}
	return longest
}
