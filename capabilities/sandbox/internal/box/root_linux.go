package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// programFolders are where the programs of a machine are. On most machines all but the first are links into it.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// programFiles are what programs need of /etc: names of libraries, certificates of authorities, and which program a name stands for.
var programFiles = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/protocols",
	"/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
}

// etc are the files of /etc that a box has of its own.
var etc = map[string]string{
	"passwd": "root:x:0:0:root:" + Home + ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":  "root:x:0:\nnogroup:x:65534:\n",
	"hosts":  "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n", "hostname": "sandbox\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", "shells": "/bin/sh\n",
}

// mount puts the root at a folder, for the calling thread, and returns the folders of this machine to be mounted in it.
func (r Root) mount(at string) (programs []string, err error) {
	if r.Dir != "" {
		if err := unix.Mount(r.Dir, at, "", unix.MS_BIND, ""); err != nil {
			return nil, err
		}
		return nil, unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,nr_inodes=1024,mode=755"); err != nil {
		return nil, err
	}
	for _, p := range Points {
		if err := os.MkdirAll(filepath.Join(at, p), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(at, "etc"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range etc {
		if err := os.WriteFile(filepath.Join(at, "etc", name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for _, p := range append(append(programFolders, programFiles...), r.Paths...) {
		mounted, err := show(at, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if mounted {
			programs = append(programs, p)
		}
	}
	return programs, nil
}

// show makes a place for a folder or file of this machine, or a copy of a link.
func show(at, path string) (mounted bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	inside := filepath.Join(at, path)
	if err := os.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
		return false, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return false, err
		}
		return false, os.Symlink(target, inside)
	case info.IsDir():
		return true, os.MkdirAll(inside, 0o755)
	case info.Mode().IsRegular():
		return true, os.WriteFile(inside, nil, 0o644)
	default:
		return false, nil
	}
}
