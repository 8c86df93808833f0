package box

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rootOf makes a root file system with cat, and what cat needs.
func rootOf(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for at := root; at != os.TempDir(); at = filepath.Dir(at) { // the box's root is another user
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range append([]string{"etc/ssl/certs"}, Points...) {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	needs, err := exec.CommandContext(t.Context(), "ldd", "/bin/cat").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(needs), -1), "/bin/cat") {
		program, err := os.ReadFile(file)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, file), program, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestTrust adds an authority to the list of a root, wherever that has one.
func TestTrust(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		const debian, fedora = "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"
		const extracted = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
		const added = "added\n"
		for name, c := range map[string]struct {
			files, links map[string]string
			want         map[string]string // what the box has in its files
			gone         []string
		}{
			"no list": {want: map[string]string{Authorities: added}, gone: []string{debian, fedora}},
			"Debian":  {files: map[string]string{debian: "own"}, want: map[string]string{Authorities: "own\n" + added, debian: "own\n" + added}},
			"Fedora": {
				files: map[string]string{extracted: "own\n"}, links: map[string]string{fedora: extracted},
				want: map[string]string{fedora: "own\n" + added, extracted: "own\n" + added},
			},
			"links that lead out": {
				files: map[string]string{"/etc/passwd": "of the root"},
				links: map[string]string{debian: "../../../../../../../../etc/passwd", fedora: "/proc/self/root/etc/hostname", "/etc/ssl/cert.pem": "/etc/ssl/cert.pem"},
				want:  map[string]string{Authorities: "of the root\n" + added, debian: "of the root\n" + added},
				gone:  []string{fedora, "/etc/ssl/cert.pem"},
			},
			"a folder": {files: map[string]string{debian + "/x": "x"}, want: map[string]string{Authorities: added, debian + "/x": "x"}},
		} {
			t.Run(name, func(t *testing.T) {
				root := rootOf(t)
				put := func(at string, write func(at string) error) {
					at = filepath.Join(root, at)
					if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := write(at); err != nil {
						t.Fatal(err)
					}
				}
				for at, text := range c.files {
					put(at, func(at string) error { return os.WriteFile(at, []byte(text), 0o644) })
				}
				for at, target := range c.links {
					put(at, func(at string) error { return os.Symlink(target, at) })
				}
				b := start(t, o, Root{Dir: root, Authority: []byte(added)}, testLimits)
				for at, want := range c.want {
					if got := run(t, b, "/bin/cat", at); got.out != want {
						t.Errorf("%s: %q, %s", at, got.out, got.err)
					}
				}
				for _, at := range c.gone {
					if got := run(t, b, "/bin/cat", at); got.Code == 0 {
						t.Errorf("%s: %q", at, got.out)
					}
				}
				for at, text := range c.files {
					if kept, err := os.ReadFile(filepath.Join(root, at)); err != nil || string(kept) != text {
						t.Errorf("the image has changed at %s: %q, %v", at, kept, err)
					}
				}
			})
		}
		root := rootOf(t)
		if err := os.WriteFile(filepath.Join(root, debian), bytes.Repeat([]byte("x"), maxBundle+1), 0o644); err != nil {
			t.Fatal(err)
		}
		if b, err := Start(t.Context(), Options{Dir: t.TempDir()}, Root{Dir: root, Authority: []byte(added)}, testLimits); err == nil || !strings.Contains(err.Error(), "the list has more than") {
			t.Errorf("a list that is too large: %v", err)
			if err == nil {
				_ = b.Close()
			}
		}
	})
}
