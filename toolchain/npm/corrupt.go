package npm

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// corruption reads npm's messages, and looks for an archive that does not match its digest. npm would fetch that archive six times,
// with pauses of more than a minute.
type corruption struct {
	line  []byte
	found func(url string)
}

var corrupted = lazyregexp.New(`\bfetch GET (\S+) attempt \d+ failed with EINTEGRITY\b`)

// Write implements io.Writer.
func (c *corruption) Write(p []byte) (int, error) {
	const longest = 8 << 10 // bytes of a line
	for text := range bytes.Lines(p) {
		c.line = append(c.line, text[:min(len(text), longest-len(c.line))]...)
		if !bytes.HasSuffix(text, []byte("\n")) {
			continue
		}
		if m := corrupted.FindSubmatch(c.line); m != nil {
			c.found(string(m[1]))
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
