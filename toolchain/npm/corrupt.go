package npm

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// listener reads npm's messages. It looks for an archive that does not match its digest, which npm would fetch six times, with pauses of more
// than a minute, for answers of the registry, for older ones that npm takes in their place, and for a first request that reaches no server.
type listener struct {
	line    []byte
	corrupt func(url string)
	away    func(url, code string)
	got     func(url string, fetched bool) // not fetched if npm had the answer
	stale   func()
}

// staleData matches what npm says when a registry did not answer, and it has an older answer.
var staleData = lazyregexp.New(`\(cache stale\)\s*$`)

// attempted matches what npm says about a request that failed, which it may repeat.
var attempted = lazyregexp.New(`\bfetch GET (\S+) attempt \d+ failed with (\w+)`)

// Write implements io.Writer.
func (c *listener) Write(p []byte) (int, error) {
	const longest = 8 << 10 // bytes of a line
	for text := range bytes.Lines(p) {
		c.line = append(c.line, text[:min(len(text), longest-len(c.line))]...)
		if !bytes.HasSuffix(text, []byte("\n")) {
			continue
		}
		if m := attempted.FindSubmatch(c.line); m != nil {
			if url, code := string(m[1]), string(m[2]); code == "EINTEGRITY" {
				c.corrupt(url)
			} else {
				c.away(url, code)
			}
		} else if m := answered.FindSubmatch(c.line); m != nil {
			old := staleData.Match(c.line)
			c.got(string(m[2]), len(m[1]) > 0 && !old)
			if old {
				c.stale()
			}
		}
		c.line = c.line[:0]
	}
	return len(p), nil
}

// corruptError is an archive, by its URL, that does not match its digest.
type corruptError struct{ url string }

func (e *corruptError) Error() string { return "the digest of an archive does not match" }

// explain names the package. The registry may have moved since it recorded the URLs of its archives.
func (e *corruptError) explain(packages []located) error {
	for _, p := range packages {
		if u, err := url.Parse(p.tarball); err == nil && len(u.Path) > 1 && strings.HasSuffix(e.url, u.EscapedPath()) {
			return otherBytes(p.Name + "@" + p.Version)
		}
	}
	return otherBytes("a package")
}

func otherBytes(name string) error {
	return authors(fmt.Sprintf("the registry's archive of %s does not match the digest that the registry promises, so it was refused", name), otherOrAgain)
}
