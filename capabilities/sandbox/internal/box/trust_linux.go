package box

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// bundles are the lists of authorities of systems: of Debian and Alpine, of Fedora, and of SUSE.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem",
}

// maxBundle is the largest list of a root, in bytes.
const maxBundle = 4 << 20

// trust writes the list of the root, with the authority added, to a file, and returns the mounts that put it where programs look. rootfs is
// the root, in which programs are to be mounted.
func (r Root) trust(rootfs, file string, programs []string) ([]mount, error) {
	if len(r.Authority) == 0 {
		return nil, nil
	}
	at := []string{Authorities}
	var list []byte
	for _, path := range bundles {
		text, err := r.bundle(rootfs, path, programs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if text == nil {
			continue
		}
		at = append(at, path)
		if list == nil {
			list = text
		}
	}
	if len(list) > 0 && !bytes.HasSuffix(list, []byte("\n")) {
		list = append(list, '\n')
	}
	var mounts []mount
	for _, path := range at {
		mounts = append(mounts, mount{path, "bind", file, []string{"bind", "ro", "nosuid", "nodev", "noexec"}})
	}
	return mounts, os.WriteFile(file, append(list, r.Authority...), 0o444)
}

// bundle returns a list of the root, or nil if there is none. Links are followed in the root, as the runtime does that mounts something there.
func (r Root) bundle(rootfs, path string, programs []string) ([]byte, error) {
	if r.Dir == "" {
		rootfs = "/"
		real, err := filepath.EvalSymlinks(path)
		for _, p := range []string{path, real} {
			if err != nil || !slices.ContainsFunc(programs, func(folder string) bool { return strings.HasPrefix(p, folder+"/") }) {
				return nil, nil
			}
		}
	}
	top, err := os.Open(rootfs)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	fd, err := unix.Openat2(int(top.Fd()), strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, nil // there is none, or a link that leads nowhere
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err == nil && len(text) > maxBundle {
		err = fmt.Errorf("the list has more than %d bytes", maxBundle)
	}
	return text, err
}
