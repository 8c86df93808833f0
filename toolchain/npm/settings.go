package npm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/lazyregexp"
)

// ourSettings are the npmrc lines besides those taken from the user's: where the registry is, how to log in and how to reach it.
// Older versions of npm do not know all of them; the check of the lockfile makes up for that.
const ourSettings = `
ignore-scripts=true
allow-git=none
allow-remote=none
allow-file=none
allow-directory=none
git=/git-is-not-used
audit=false
fund=false
update-notifier=false
progress=false
loglevel=error
logs-max=0
package-lock=true
lockfile-version=3
omit-lockfile-registry-resolved=true
install-strategy=hoisted
bin-links=false
engine-strict=false
omit[]=dev
omit[]=optional
`

// takenOver matches the settings of npm that come from the user: in a file or, with the prefix npm_config_, in the
// environment.
var (
	takenOver     = lazyregexp.New(`^(registry|@[^:=\s]+:registry|//[^=\s]+|proxy|https-proxy|http-proxy|noproxy|cafile|ca(\[\])?|cert|key)\s*=`)
	takenVariable = lazyregexp.New(`(?i)^(npm_config_(registry|@[^=]+:registry|//[^=]+|proxy|https_proxy|http_proxy|noproxy|cafile|ca|cert|key)|(https?|no|all)_proxy|` +
		`path|systemroot|node_extra_ca_certs|ssl_cert_(file|dir))$`)
	reference  = lazyregexp.New(`\$\{[^}]+\}`)
	quotedText = lazyregexp.New(`^[^=]*=\s*["']`)

	// What npm puts in for a variable once it has read a file, is to be read as such from one.
	plain        = strings.NewReplacer("\r", "", "\n", "", `\`, `\\`, ";", `\;`, "#", `\#`)
	doubleQuoted = strings.NewReplacer("\r", "", "\n", "", `\`, `\\`, `"`, `\"`)
	singleQuoted = strings.NewReplacer("\r", "", "\n", "")
)

const maxSettings = 1 << 20 // bytes

// userSettings are the settings taken from the user's and the machine's npmrc, wherever npm keeps these files.
type userSettings struct {
	npmrc      string
	registries map[string]string // URLs, by the scope of packages as in "@scope", and for others by ""
}

// registry is the URL of the registry of a package.
func (s *userSettings) registry(name string) string {
	if scope, _, scoped := strings.Cut(name, "/"); scoped && s.registries[scope] != "" {
		return s.registries[scope]
	}
	return s.registries[""]
}

// settings asks npm for the user's settings until it has answered once.
func (c *Client) settings(ctx context.Context) (*userSettings, error) {
	const step = "saying where its settings are"
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, c.ended(ctx, step)
	}
	if c.user == nil {
		user, err := readSettings(ctx, c.o.NPM)
		if ctx.Err() != nil {
			return nil, c.ended(ctx, step)
		}
		if err != nil {
			return nil, err
		}
		c.user = user
	}
	return c.user, nil
}

func readSettings(ctx context.Context, name string) (_ *userSettings, err error) {
	npm, err := findNPM(name)
	if err != nil {
		return nil, err
	}
	dir, err := makeFolder() // so that no project's settings count
	if err != nil {
		return nil, noRoom(err)
	}
	defer func() { err = errors.Join(err, dir.remove()) }()
	cmd := command(ctx, dir.name, npm, "config", "ls", "--json", "--no-workspaces", "--loglevel=error")
	var out bytes.Buffer
	cmd.Stdout = &capped{to: &out, left: maxSettings}
	var all map[string]any
	err = cmd.Run()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &all)
	}
	if err != nil {
		return nil, clientError("npm does not say where its settings are", "Check that `npm config ls --json` works on this machine.", err)
	}
	var text strings.Builder
	for _, name := range []string{"globalconfig", "userconfig"} { // the user's settings override the machine's
		file, _ := all[name].(string)
		content, err := readNPMRC(file)
		if err != nil {
			return nil, clientError("npm's settings in "+file+" cannot be read", "Check that file.", err)
		}
		text.WriteString(filterSettings(content, os.LookupEnv))
	}
	standard, _ := all["registry"].(string)
	registries := map[string]string{"": standard}
	for name, value := range all {
		if scope, ok := strings.CutSuffix(name, ":registry"); ok {
			registries[scope], _ = value.(string)
		}
	}
	return &userSettings{text.String(), registries}, nil
}

// readNPMRC reads a file of settings, which need not be there.
func readNPMRC(name string) (string, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := bounded.Read(f, maxSettings)
	if errors.Is(err, bounded.ErrTooLarge) {
		err = fmt.Errorf("it has more than %d MiB", maxSettings>>20)
	}
	return string(content), err
}

// filterSettings keeps the relevant lines of an npmrc, with the environment variables that they name.
func filterSettings(text string, variable func(name string) (string, bool)) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") { // the lines below belong to something else
			break
		}
		if !takenOver.MatchString(line) {
			continue
		}
		written := plain
		switch quoted := quotedText.FindString(line); {
		case strings.HasSuffix(quoted, `"`):
			written = doubleQuoted
		case quoted != "":
			written = singleQuoted
		}
		line = reference.ReplaceAllStringFunc(line, func(all string) string {
			value, ok := variable(strings.TrimRight(all[2:len(all)-1], "?"))
			if !ok && !strings.HasSuffix(all, "?}") {
				return all
			}
			return written.Replace(value)
		})
		if takenOver.MatchString(line) { // still
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}

// environment returns the environment variables that npm gets.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !takenVariable.MatchString(name)
	})
}
