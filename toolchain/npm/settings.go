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
	"github.com/stilehost/stile/internal/sha256hex"
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
fetch-retry-factor=2
fetch-retry-mintimeout=1000
fetch-retry-maxtimeout=5000
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

// reached matches settings that say how a registry is reached, and not which it is, who asks, or whose word counts.
var reached = lazyregexp.New(`(?i)^(npm_config_)?(https?[-_]proxy|no_?proxy|proxy|all_proxy|path|systemroot)\s*=`)

// holder names whoever has these settings: the registries, their logins and certificates. Answers of registries are kept for one holder.
func (s *userSettings) holder(environment []string) string {
	var all []string
	for line := range strings.Lines(s.npmrc) {
		all = append(all, strings.TrimSpace(line))
	}
	for scope, url := range s.registries {
		all = append(all, scope+":registry="+url)
	}
	all = slices.DeleteFunc(append(all, environment...), reached.MatchString)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

// registry is the URL of the registry of a package.
func (s *userSettings) registry(name string) string {
	if scope, _, scoped := strings.Cut(name, "/"); scoped && s.registries[scope] != "" {
		return s.registries[scope]
	}
	return s.registries[""]
}

const askingSettings = "saying where its settings are"

// settings asks npm for the user's settings until it has answered once.
func (c *Client) settings(ctx context.Context) (*userSettings, error) {
	const step = askingSettings
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, c.ended(ctx, step)
	}
	if c.user == nil {
		files, err := askSettings(ctx, c.o.NPM)
		if ctx.Err() != nil {
			return nil, c.ended(ctx, step)
		}
		if err != nil {
			return nil, err
		}
		if c.user, err = files.read(); err != nil {
			return nil, err
		}
		if c.cache != nil {
			_ = c.cache.Put(settingsKind, c.settingsKey(), encode(files)) // npm is asked again otherwise
		}
	}
	return c.user, nil
}

// holder names whoever has the settings, without running npm if it can. It is empty if nothing is kept.
func (c *Client) holder(ctx context.Context) (string, error) {
	if c.cache == nil {
		return "", nil
	}
	select {
	case c.asking <- struct{}{}:
	case <-ctx.Done():
		return "", c.ended(ctx, askingSettings)
	}
	user := c.user
	<-c.asking
	if user == nil {
		user = c.known()
	}
	if user == nil {
		var err error
		if user, err = c.settings(ctx); err != nil {
			return "", err
		}
	}
	return c.tag(user), nil
}

// tag is the name of the holder of settings.
func (c *Client) tag(user *userSettings) string {
	if c.cache == nil {
		return ""
	}
	return c.cache.Tag("npm-holder", user.holder(environment(os.Environ())))
}

// known returns the settings without running npm, from what it said of its files when it was last asked. It is nil if there are others now.
func (c *Client) known() *userSettings {
	if c.cache == nil {
		return nil
	}
	text, ok, _ := c.cache.Get(settingsKind, c.settingsKey())
	var files settingsFiles
	if !ok || json.Unmarshal(text, &files) != nil {
		return nil
	}
	if now, err := sumsOf(files.Names); err != nil || !slices.Equal(now, files.Sums) {
		return nil
	}
	user, err := files.read()
	if err != nil {
		return nil
	}
	return user
}

const settingsKind = "npm-settings"

// settingsKey is what npm's word about its files depends on. Variables that name no file of settings are in it too.
func (c *Client) settingsKey() string {
	all := slices.DeleteFunc(os.Environ(), func(variable string) bool { return !namesSettings.MatchString(variable) })
	slices.Sort(all)
	return c.o.NPM + "\n" + strings.Join(all, "\n")
}

var namesSettings = lazyregexp.New(`(?i)^(npm_config_[^=]*|path|home|userprofile|appdata|prefix|xdg_config_home)=`)

// settingsFiles are npm's files of settings, the machine's first, and the registries that it makes of them.
type settingsFiles struct {
	Names      []string          `json:"names"`
	Sums       []string          `json:"sums"` // of their contents
	Registries map[string]string `json:"registries"`
}

func sumsOf(names []string) ([]string, error) {
	sums := make([]string, len(names))
	for i, name := range names {
		content, err := readNPMRC(name)
		if err != nil {
			return nil, clientError("npm's settings in "+name+" cannot be read", "Check that file.", err)
		}
		sums[i] = sha256hex.Of([]byte(content))
	}
	return sums, nil
}

// read reads the files again.
func (f *settingsFiles) read() (*userSettings, error) {
	var text strings.Builder
	for _, name := range f.Names {
		content, err := readNPMRC(name)
		if err != nil {
			return nil, clientError("npm's settings in "+name+" cannot be read", "Check that file.", err)
		}
		text.WriteString(filterSettings(content, os.LookupEnv))
	}
	return &userSettings{text.String(), f.Registries}, nil
}

// readSettings asks npm for the user's settings.
func readSettings(ctx context.Context, name string) (*userSettings, error) {
	files, err := askSettings(ctx, name)
	if err != nil {
		return nil, err
	}
	return files.read()
}

// askSettings asks npm where its settings are.
func askSettings(ctx context.Context, name string) (_ *settingsFiles, err error) {
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
	files := &settingsFiles{}
	for _, name := range []string{"globalconfig", "userconfig"} { // the user's settings override the machine's
		file, _ := all[name].(string)
		files.Names = append(files.Names, file)
	}
	standard, _ := all["registry"].(string)
	files.Registries = map[string]string{"": standard}
	for name, value := range all {
		if scope, ok := strings.CutSuffix(name, ":registry"); ok {
			files.Registries[scope], _ = value.(string)
		}
	}
	files.Sums, err = sumsOf(files.Names)
	return files, err
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
