package http

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/automaton"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// searchFor makes what finds the forms.
func searchFor(forms secrets) *automaton.Automaton {
	return automaton.New(func(yield func(string) bool) {
		for _, form := range forms {
			if !yield(string(form)) {
				return
			}
		}
	})
}

// secrets are the forms in which servers are known to echo what was sent to them. Each is covered with asterisks, as many
// as it has bytes, so that lengths and offsets stay true.
type secrets [][]byte

// with adds the forms of a value: as it is, percent-encoded, in JSON, in HTML, in hex, and in base64, also as a part of what was encoded. A
// maskReader finds them in lines too.
func (s secrets) with(value string) secrets {
	quoted, _ := json.Marshal(value) // of a string, never fails
	forms := []string{
		value, url.QueryEscape(value), url.PathEscape(value), string(quoted[1 : len(quoted)-1]),
		hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))),
	}
	spaced := fmt.Sprintf("% X", value)
	forms = append(forms, spaced, strings.ToLower(spaced), "%"+strings.ReplaceAll(spaced, " ", "%"))
	spaced = strings.ReplaceAll(spaced, " ", ":")
	forms = append(forms, spaced, strings.ToLower(spaced))
	for _, spelling := range spellings() {
		forms = append(forms, spelling.Replace(value))
	}
	for _, plain := range urlPlain {
		var form strings.Builder
		for _, c := range []byte(value) {
			if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(plain, c) >= 0 {
				form.WriteByte(c)
			} else {
				_, _ = fmt.Fprintf(&form, "%%%02X", c)
			}
		}
		forms = append(forms, form.String(), strings.ReplaceAll(form.String(), "%20", "+"))
	}
	for _, form := range base64Forms(value) {
		forms = append(forms, form, url.QueryEscape(form), strings.ReplaceAll(form, "/", `\/`), strings.ReplaceAll(form, "+", `\u002B`),
			strings.ReplaceAll(form, "+", "&#x2B;"))
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

// base64Forms are the value in both alphabets without padding: by itself and behind "Bearer ", and what of it does not depend on its
// neighbours when it begins at the first, second or third byte of a group, with and without more behind it. Of a character that it shares
// with a neighbour at most four bits are its own.
func base64Forms(value string) (forms []string) {
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, alphabet.EncodeToString([]byte("Bearer "+value)))
		for before := range 3 {
			text := alphabet.EncodeToString([]byte("\x00\x00"[:before] + value))
			start, end := (8*before+5)/6, 8*(before+len(value))/6
			forms = append(forms, text[start:], text[start:end])
		}
	}
	return forms
}

var encoded = lazyregexp.New(`%[0-9A-F]{2}|\\u[0-9A-F]{4}|&#x[0-9A-F]{2};`)

// urlPlain is what encoders leave as it is in a URL, beside letters and digits.
var urlPlain = []string{
	"",                     // NON_ALPHANUMERIC of Rust's percent-encoding
	"-_.",                  // urlencode of PHP
	"-_.*",                 // forms: URLSearchParams, URLEncoder of Java
	"-_.!*()",              // WebUtility of .NET
	"-_./*@+",              // escape of JavaScript
	"-_.~/",                // quote of Python
	"-_.~!'()*",            // encodeURIComponent
	"-_.~!'()*;,/?:@&=+$#", // encodeURI
}

// spellings are those of JSON and of HTML, as encoders differ in what they escape.
var spellings = sync.OnceValue(func() []*strings.Replacer {
	all := []*strings.Replacer{
		strings.NewReplacer(`\`, `\\`, `"`, `\"`),
		// PHP
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, `/`, `\/`),
		// Symfony, with and without JSON_UNESCAPED_SLASHES
		strings.NewReplacer(`\`, `\\`, `"`, `\u0022`, `/`, `\/`, `<`, `\u003C`, `>`, `\u003E`, `&`, `\u0026`, `'`, `\u0027`),
		strings.NewReplacer(`\`, `\\`, `"`, `\u0022`, `<`, `\u003C`, `>`, `\u003E`, `&`, `\u0026`, `'`, `\u0027`),
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
			underscore := append(slices.Clone(pairs), "`", "&#x60;")
			razor := append(slices.Clone(underscore), "+", "&#x2B;")
			all = append(all, strings.NewReplacer(pairs...), strings.NewReplacer(underscore...), strings.NewReplacer(razor...))
			all = append(all, strings.NewReplacer(handlebars...), strings.NewReplacer(mustache...))
		}
	}
	return all
})

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

// maskReader reads from r without the secrets. It keeps back only what could be the beginning of one, and looks at each byte once, whatever
// the bytes are.
type maskReader struct {
	r       io.Reader
	secrets secrets
	search  *automaton.Pass // for secrets; nil until the first byte is read
	gone    int             // so much was returned
	data    []byte          // read and not returned yet, with what is known to be of a secret covered
	covered run             // the last stretch of data that is covered
	ready   int             // so much of data can be returned
	err     error
}

type run struct{ start, end int }

func (m *maskReader) Read(p []byte) (int, error) {
	for m.ready == 0 && m.err == nil {
		m.fill()
	}
	n := copy(p, m.data[:m.ready])
	m.data, m.ready, m.gone = m.data[n:], m.ready-n, m.gone+n
	m.covered = run{m.covered.start - n, m.covered.end - n}
	if n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

func (m *maskReader) fill() {
	if m.search == nil {
		m.search = searchFor(m.secrets).Start()
	}
	const chunk = 32 << 10
	start := len(m.data)
	if cap(m.data)-start < chunk/2 { // what is kept back is short
		m.data = append(make([]byte, 0, start+chunk), m.data...)
	}
	n, err := m.r.Read(m.data[start:cap(m.data)])
	m.data, m.err = m.data[:start+n], err
	for i := start; i < len(m.data); i++ {
		if start, found := m.search.Next(m.data[i]); found {
			m.cover(run{start - m.gone, i + 1})
		}
	}
	m.ready = len(m.data)
	// Where a response is cut off, the beginning of a secret stays hidden; where it ends, it is none.
	if !errors.Is(err, io.EOF) {
		m.ready = m.search.Open() - m.gone
	}
}

// cover covers a run that ends behind all others. search has read its bytes.
func (m *maskReader) cover(r run) {
	if r.start >= m.covered.start && r.start <= m.covered.end { // only what is new of it
		asterisks(m.data[m.covered.end:r.end])
		m.covered.end = r.end
		return
	}
	asterisks(m.data[r.start:r.end])
	m.covered = r
}
