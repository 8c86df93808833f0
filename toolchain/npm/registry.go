package npm

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// registryKeys are the public keys of npm's own registry, a line "<key id> <key>" each, with the time at which it expires if
// it does. A mirror passes signatures on, so
// these are compared with whatever registry is set up, and what that one calls its keys does not count. `npm audit
// signatures` does the same with keys from Sigstore, which a machine with a mirror only does not reach.
//
//go:embed keys.txt
var registryKeys string

// registryKey is a key of the registry. It signs what is published before it expires.
type registryKey struct {
	*ecdsa.PublicKey
	expires time.Time // the zero time if it does not
}

func parseKeys(text string) (map[string]registryKey, error) {
	keys := make(map[string]registryKey)
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		encoded, expires, ends := strings.Cut(rest, " ")
		der, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, err
		}
		parsed, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, err
		}
		key, ok := parsed.(*ecdsa.PublicKey)
		if !ok {
			return nil, fmt.Errorf("%s is not an ECDSA key", id)
		}
		k := registryKey{PublicKey: key}
		if ends {
			if k.expires, err = time.Parse(time.RFC3339, expires); err != nil {
				return nil, err
			}
		}
		keys[id] = k
	}
	return keys, nil
}

// located is a package and its folder in the tree.
type located struct {
	Package
	at       string
	tarball  string // URL
	unpacked int64  // bytes, as the registry says; 0 if it does not
}

// describe says where the packages of a lock are, and what the registry says about them. It asks the registry unless that has said so of each
// before. A wrong signature is an error.
// recalled means that it was not asked. With again it is.
func (c *Client) describe(ctx context.Context, w *workplace, lock *lockfile, offline, again bool) (packages []located, recalled bool, err error) {
	all, lacks := c.recall(w.holder, lock)
	recalled = lacks == "" && !again
	switch {
	case recalled:
	case offline:
		return nil, false, clientError("the cache does not have the package "+lacks, "Connect this machine, and leave out --offline once.", nil)
	default:
		if all, err = c.view(ctx, w, lock); err != nil {
			return nil, false, err
		}
	}
	if packages, err = c.combine(w.user, lock, all); err == nil && !recalled {
		c.remember(w.holder, lock, all)
	}
	return packages, recalled, err
}

// factKey is the key of what a registry said about a version.
func factKey(holder, name string, e lockEntry) string {
	return holder + " " + name + "@" + e.Version + " " + e.Integrity
}

const factKind = "npm-facts"

// recall returns what the registry said before about the packages of a lock. lacks is the first one of which that is not known.
func (c *Client) recall(holder string, lock *lockfile) (all answers, lacks string) {
	all = answers{}
	for _, at := range lock.installed() {
		e, name := lock.Packages[at], lock.nameAt(at)
		m := &metadata{}
		known := false
		if c.cache != nil {
			var text []byte
			text, known, _ = c.cache.Get(factKind, factKey(holder, name, e))
			known = known && json.Unmarshal(text, m) == nil
		}
		if !known {
			return nil, name + "@" + e.Version
		}
		if all[name] == nil {
			all[name] = map[string]*metadata{}
		}
		all[name][e.Version] = m
	}
	return all, ""
}

// remember keeps what the registry said.
func (c *Client) remember(holder string, lock *lockfile, all answers) {
	if c.cache == nil {
		return
	}
	for _, at := range lock.installed() {
		e, name := lock.Packages[at], lock.nameAt(at)
		if m := all[name][e.Version]; m != nil {
			if err := c.cache.Put(factKind, factKey(holder, name, e), encode(m)); err != nil { // it is asked again
				return
			}
		}
	}
}

// view asks the registry about all packages of a lock, in one run of npm: they become the workspaces of a project, and `npm
// view` reports all named versions for each.
func (c *Client) view(ctx context.Context, w *workplace, lock *lockfile) (answers, error) {
	var names []string
	for _, at := range lock.installed() {
		names = append(names, lock.nameAt(at))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	err := w.root.MkdirAll(viewDir+"/w", 0o700)
	write := func(name string, v any) {
		if err == nil {
			err = w.root.WriteFile(viewDir+"/"+name, encode(v), 0o600)
		}
	}
	write("package.json", map[string]any{"name": projectName, "private": true, "workspaces": []string{"w/*"}})
	for i, name := range names {
		if err == nil {
			err = w.root.Mkdir(fmt.Sprintf("%s/w/%d", viewDir, i), 0o700)
		}
		write(fmt.Sprintf("w/%d/package.json", i), map[string]any{"name": name})
	}
	if err != nil {
		return nil, noRoom(err)
	}
	spec := "@=" + strings.Join(lock.versions(), "||=")
	var all answers
	if err := w.run(ctx, func(out io.Reader) (err error) {
		all, err = readAnswers(out, names, lock.versions(), spec)
		return err
	}, "view", "."+spec, "version", "time", "dist", "--workspaces"); err != nil {
		return nil, err
	}
	return all, nil
}

// combine joins what the lock and the registry say.
func (c *Client) combine(user *userSettings, lock *lockfile, all answers) ([]located, error) {
	var packages []located
	for _, at := range lock.installed() {
		e := lock.Packages[at]
		p := located{Package{Name: lock.nameAt(at), Version: e.Version, Integrity: e.Integrity, Signature: SignatureNotOffered}, at, "", 0}
		if m := all[p.Name][e.Version]; m != nil {
			if isSHA512(m.Integrity) && m.Integrity != p.Integrity {
				return nil, clientError(fmt.Sprintf("the registry's digest of %s@%s differs from the lockfile's, so the package was refused", p.Name, p.Version), "Check the registry in npm's settings, and where the lockfile comes from.", nil)
			}
			var err error
			if p.tarball, err = tarball(user.registry(p.Name), m.Tarball); err != nil {
				return nil, clientError(fmt.Sprintf("the registry's archive of %s@%s %v, so it was not fetched", p.Name, p.Version, err), "Check the registry in npm's settings, or use one that serves its archives itself.", nil)
			}
			if m.Unpacked <= onDisk*c.o.MaxBytes {
				p.unpacked = m.Unpacked
			}
			p.Published, _ = time.Parse(time.RFC3339, m.Published) // the zero time means unknown
			if p.Signature, err = c.verify(p.Package, m.Signatures); err != nil {
				return nil, err
			}
		}
		if p.tarball == "" {
			return nil, clientError(fmt.Sprintf("the registry does not have %s@%s", p.Name, p.Version), "Check the registry in npm's settings, and where the lockfile comes from.", nil)
		}
		_, asked := lock.wanted()[p.Name]
		p.Direct = asked && at == "node_modules/"+p.Name
		p.Warnings = warnings(p.Name, e)
		packages = append(packages, p)
	}
	anySigned := slices.ContainsFunc(packages, func(p located) bool { return p.Signature != SignatureNotOffered })
	for i := range packages {
		if anySigned && packages[i].Signature == SignatureNotOffered {
			packages[i].Warnings = append(packages[i].Warnings, "It is not signed, unlike other packages of this registry.")
		}
	}
	return packages, nil
}

// tarball returns the URL of an archive on its registry, which chose the URL. One on another host is asked for on the registry itself, at
// the same path: mirrors pass on the URLs of the registry that they mirror. The error says what is wrong with it.
func tarball(registry, archive string) (string, error) {
	own, err := url.Parse(registry)
	if err != nil || own.Host == "" {
		return "", errors.New("is of a registry whose URL is not understood")
	}
	u, err := url.Parse(archive)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("has no URL of http or https")
	case !sameHost(u, own):
		if folder := strings.TrimRight(own.Path, "/") + "/"; !strings.HasPrefix(u.Path, folder) {
			u.Path, u.RawPath = folder+strings.TrimLeft(u.Path, "/"), folder+strings.TrimLeft(u.EscapedPath(), "/")
		}
	}
	u.Scheme, u.Host, u.User, u.Fragment = own.Scheme, own.Host, nil, ""
	return u.String(), nil
}

// sameHost compares hosts and ports. Names are the same in any case, and a scheme has a port of its own.
func sameHost(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		switch port := u.Port(); {
		case port != "":
			return port
		case u.Scheme == "http":
			return "80"
		default:
			return "443"
		}
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && (a.Host == b.Host || port(a) == port(b))
}

func warnings(name string, e lockEntry) []string {
	var all []string
	if popular := closeName(name); popular != "" {
		all = append(all, fmt.Sprintf("Its name is close to that of the popular package %s.", popular))
	}
	if e.Deprecated != "" {
		all = append(all, "It is deprecated: "+printable.Short(strings.ReplaceAll(e.Deprecated, "\n", " "), 300))
	}
	if e.HasScript {
		all = append(all, "It has a script for when it is installed, which was not run.")
	}
	return all
}

// verify checks what a registry signs, <name>@<version>:<integrity>. One valid signature suffices, and a wrong one is an error.
func (c *Client) verify(p Package, signatures []signature) (string, error) {
	if len(signatures) == 0 {
		return SignatureNotOffered, nil
	}
	result := SignatureUnknownKey
	digest := sha256.Sum256([]byte(p.Name + "@" + p.Version + ":" + p.Integrity))
	for _, s := range signatures {
		key, ok := c.keys[s.KeyID]
		if !ok {
			continue
		}
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		if err != nil || !ecdsa.VerifyASN1(key.PublicKey, digest[:], sig) {
			return "", clientError(fmt.Sprintf("the registry's signature of %s@%s does not match what it serves", p.Name, p.Version), "Somebody may have changed the package in transit: check the registry in npm's settings, and where the lockfile comes from.", err)
		}
		if !key.expires.IsZero() && !p.Published.Before(key.expires) {
			return "", clientError(fmt.Sprintf("the registry's signature of %s@%s is by a key that had expired when it was published", p.Name, p.Version), "Somebody may have changed the package in transit: check the registry in npm's settings.", nil)
		}
		result = SignatureVerified
	}
	return result, nil
}

// tooFresh refuses versions that were published too recently, or at an unknown time.
func (c *Client) tooFresh(packages []Package) error {
	var problems []toolchain.Problem
	for _, p := range packages {
		age := c.o.Now().Sub(p.Published)
		if !p.Published.IsZero() && age >= c.o.MinAge {
			continue
		}
		text := fmt.Sprintf("%s@%s was published %.0f hours ago; it must be at least %.0f hours old", p.Name, p.Version, max(0, age.Hours()), c.o.MinAge.Hours())
		if p.Published.IsZero() {
			text = fmt.Sprintf("%s@%s: the registry does not say when it was published", p.Name, p.Version)
		}
		problems = append(problems, toolchain.Problem{File: ManifestFile, Text: text, Fix: "an older version; only a person can allow fresh ones"})
	}
	if len(problems) > 0 {
		return &toolchain.BuildError{Problems: problems}
	}
	return nil
}

func byName(a, b Package) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}
