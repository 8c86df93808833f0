package images

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

const (
	maxDocument = 4 << 20  // bytes of an index, a manifest or a configuration
	maxImage    = 32 << 30 // bytes of all files
	maxEntries  = 4_000_000
	maxLayers   = 512
	// maxWindow is the most memory that unpacking a layer takes.
	maxWindow = 128 << 20
)

// FromOCI makes an image of an OCI image layout: a folder, or a tar archive of one. tag selects one of several images; the platform is
// that of this machine. Devices, pipes, owners, and setuid and setgid bits are left out, and nothing is written outside of the image.
func FromOCI(ctx context.Context, dir, name, source, tag string) (Image, error) {
	info, err := os.Stat(source)
	if err != nil {
		return Image{}, err
	}
	layout := source
	if !info.IsDir() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Image{}, err
		}
		if layout, err = os.MkdirTemp(dir, ".layout-"); err != nil {
			return Image{}, err
		}
		defer func() { _ = os.RemoveAll(layout) }() // only unpacked files
		if err := unpackLayout(ctx, source, layout); err != nil {
			return Image{}, fmt.Errorf("%s: %w", source, err)
		}
	}
	l, err := os.OpenRoot(layout)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = l.Close() }() // only read
	manifest, digest, err := findManifest(l, tag)
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", source, err)
	}
	var config v1.Image
	if err := document(l, manifest.Config, &config); err != nil {
		return Image{}, fmt.Errorf("configuration: %w", err)
	}
	i := Image{Digest: digest.String(), Source: "OCI image " + filepath.Base(source), Env: variables(config.Config.Env)}
	return keep(dir, name, i, func(root string) error {
		if len(manifest.Layers) > maxLayers {
			return fmt.Errorf("%d layers; at most %d", len(manifest.Layers), maxLayers)
		}
		u := &unpacker{ctx: ctx, left: maxImage, entries: maxEntries}
		var err error
		if u.root, err = os.Open(root); err != nil {
			return err
		}
		defer u.root.Close()
		for n, layer := range manifest.Layers {
			if err := u.layer(l, layer); err != nil {
				return fmt.Errorf("layer %d: %w", n+1, err)
			}
		}
		return nil
	})
}

// variables are those of an image that a sandbox sets.
func variables(given []string) (all []string) {
	for _, v := range given {
		name, _, ok := strings.Cut(v, "=")
		if ok && name != "" && name != "HOME" && len(v) < 4096 && !strings.ContainsRune(v, 0) && len(all) < 100 {
			all = append(all, v)
		}
	}
	return all
}

// unpackLayout takes the files of a layout out of an archive.
func unpackLayout(ctx context.Context, source, to string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // each file is closed
	if err := root.MkdirAll("blobs/sha256", 0o700); err != nil {
		return err
	}
	left := int64(maxImage)
	for archive := tar.NewReader(bufio.NewReaderSize(file, 1<<20)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		at := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || at != "index.json" && path.Dir(at) != "blobs/sha256" {
			continue
		}
		if left -= h.Size; left < 0 {
			return errors.New("the archive is too large")
		}
		out, err := root.Create(at)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, archive)
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// blob opens a blob of a layout. Its digest is checked when all of it was read.
func blob(l *os.Root, d v1.Descriptor) (io.Reader, func() error, error) {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, nil, fmt.Errorf("%.100q is no SHA-256", d.Digest)
	}
	file, err := l.Open("blobs/sha256/" + d.Digest.Encoded())
	if err != nil {
		return nil, nil, err
	}
	verifier := d.Digest.Verifier()
	r := io.TeeReader(io.LimitReader(file, d.Size+1), verifier)
	return r, func() error {
		_, err := io.Copy(io.Discard, r)
		if err == nil && !verifier.Verified() {
			err = fmt.Errorf("the blob %s has another digest", d.Digest)
		}
		return errors.Join(err, file.Close())
	}, nil
}

// document reads a blob that is JSON.
func document(l *os.Root, d v1.Descriptor, to any) error {
	if d.Size > maxDocument {
		return fmt.Errorf("%d bytes; at most %d", d.Size, maxDocument)
	}
	r, verify, err := blob(l, d)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, verify()); err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// findManifest returns the manifest of a tag for this machine, and its digest.
func findManifest(l *os.Root, tag string) (m v1.Manifest, d digest.Digest, err error) {
	file, err := l.Open("index.json")
	if err != nil {
		return m, "", fmt.Errorf("no OCI image layout: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxDocument))
	if err != nil {
		return m, "", err
	}
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return m, "", fmt.Errorf("index.json: %w", err)
	}
	all := index.Manifests
	if tag != "" {
		var tagged []v1.Descriptor
		for _, one := range all {
			if one.Annotations[v1.AnnotationRefName] == tag {
				tagged = append(tagged, one)
			}
		}
		all = tagged
	}
	for range 8 { // indexes in indexes
		one, err := choose(all)
		if err != nil {
			return m, "", err
		}
		if !strings.Contains(one.MediaType, "index") && !strings.Contains(one.MediaType, "manifest.list") {
			return m, one.Digest, document(l, one, &m)
		}
		index = v1.Index{}
		if err := document(l, one, &index); err != nil {
			return m, "", err
		}
		all = index.Manifests
	}
	return m, "", errors.New("indexes name indexes without end")
}

func choose(all []v1.Descriptor) (v1.Descriptor, error) {
	var fit []v1.Descriptor
	for _, one := range all {
		if p := one.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			fit = append(fit, one)
		}
	}
	switch len(fit) {
	case 0:
		return v1.Descriptor{}, fmt.Errorf("no image for linux/%s, or of that tag", runtime.GOARCH)
	case 1:
		return fit[0], nil
	default:
		var tags []string
		for _, one := range fit {
			tags = append(tags, one.Annotations[v1.AnnotationRefName])
		}
		return v1.Descriptor{}, fmt.Errorf("there are %d images: name a tag (%.200s)", len(fit), strings.Join(tags, ", "))
	}
}

// unpacker puts layers into a folder. The kernel resolves all paths within it, links included.
type unpacker struct {
	ctx     context.Context //nolint:containedctx // of one import
	root    *os.File
	left    int64
	entries int
	written map[string]bool // in this layer
}

func (u *unpacker) layer(l *os.Root, d v1.Descriptor) error {
	r, verify, err := blob(l, d)
	if err != nil {
		return err
	}
	err = u.unpack(r, d.MediaType)
	return errors.Join(err, verify())
}

func (u *unpacker) unpack(r io.Reader, mediaType string) error {
	switch {
	case strings.HasSuffix(mediaType, "gzip"):
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = z
	case strings.HasSuffix(mediaType, "zstd"):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	case !strings.HasSuffix(mediaType, "tar"):
		return fmt.Errorf("the media type %.100q is not known", mediaType)
	}
	u.written = map[string]bool{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, u.ctx.Err()); err != nil {
			return err
		}
		if u.entries--; u.entries < 0 {
			return fmt.Errorf("more than %d entries", maxEntries)
		}
		if err := u.entry(h, archive); err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	at := path.Clean("/" + h.Name)[1:]
	if at == "" {
		return nil
	}
	if len(at) > 4096 {
		return errors.New("the path is too long")
	}
	parent, name := path.Split(at)
	folder, err := u.folder(strings.TrimSuffix(parent, "/"))
	if err != nil {
		return err
	}
	defer folder.Close()
	if hidden, ok := strings.CutPrefix(name, ".wh."); ok {
		if hidden == ".wh..opq" {
			return u.opaque(folder, parent)
		}
		if hidden == "" || hidden == "." || hidden == ".." {
			return errors.New("it hides nothing that can be there")
		}
		return remove(folder, hidden)
	}
	u.written[at] = true
	fd, mode := int(folder.Fd()), uint32(h.Mode&0o777)
	if h.Typeflag != tar.TypeDir {
		if err := remove(folder, name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		var s unix.Stat_t
		if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err == nil && s.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err := remove(folder, name); err != nil {
				return err
			}
		}
		if err := unix.Mkdirat(fd, name, mode|0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	case tar.TypeReg:
		return u.file(fd, name, mode, h.Size, content)
	case tar.TypeSymlink:
		return unix.Symlinkat(h.Linkname, fd, name)
	case tar.TypeLink:
		target, err := u.open(path.Clean("/" + h.Linkname)[1:], unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		defer target.Close()
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", target.Fd()), fd, name, unix.AT_SYMLINK_FOLLOW)
	default: // devices and pipes
		return nil
	}
}

func (u *unpacker) file(folder int, name string, mode uint32, size int64, content io.Reader) error {
	if u.left -= size; size < 0 || u.left < 0 {
		return fmt.Errorf("the image has more than %d bytes", int64(maxImage))
	}
	fd, err := unix.Openat(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chmod(fs.FileMode(mode)), file.Close())
}

// opaque removes what earlier layers put into a folder.
func (u *unpacker) opaque(folder *os.File, parent string) error {
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		if err == nil && !u.written[parent+name] {
			err = remove(folder, name)
		}
	}
	return err
}

// remove deletes a name in a folder, with everything below it.
func remove(folder *os.File, name string) error {
	r, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()))
	if err != nil {
		return err
	}
	return errors.Join(r.RemoveAll(name), r.Close())
}

func (u *unpacker) open(at string, flags uint64) (*os.File, error) {
	if at == "" {
		at = "."
	}
	fd, err := unix.Openat2(int(u.root.Fd()), at, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), at), nil
}

// folder opens a folder, and makes those that are missing.
func (u *unpacker) folder(at string) (*os.File, error) {
	f, err := u.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) || at == "" {
		return f, err
	}
	parent, name := path.Split(at)
	above, err := u.folder(strings.TrimSuffix(parent, "/"))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := unix.Mkdirat(int(above.Fd()), name, 0o755); err != nil {
		return nil, err
	}
	return u.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
}
