package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/internal/bounded"
)

const (
	maxImage   = 32 << 30 // bytes of all files
	maxStream  = 40 << 30 // bytes of all layers, unpacked: files, their names, and what is skipped
	maxEntries = 4_000_000
	maxLayers  = 512
	// maxDescriptors is how long a list of an index or a manifest may be.
	maxDescriptors = 4096
	maxDepth       = 256 // folders
	// maxWindow is the most memory that unpacking a layer takes.
	maxWindow = 128 << 20
)

// FromOCI makes an image of an OCI image layout: a folder, or a tar archive of one. tag selects one of several images. Import says the rest.
func FromOCI(ctx context.Context, dir, name, source, tag string) (i Image, err error) {
	info, err := os.Stat(source)
	if err != nil {
		return Image{}, err
	}
	if !info.IsDir() {
		err := scratch(dir, func(work string) (err error) {
			at := filepath.Join(work, "layout")
			if err := os.Mkdir(at, 0o700); err != nil {
				return err
			}
			if err := unpackLayout(ctx, source, at); err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
			i, err = fromLayout(ctx, dir, name, at, filepath.Base(source), tag)
			return err
		})
		return i, err
	}
	return fromLayout(ctx, dir, name, source, filepath.Base(source), tag)
}

func fromLayout(ctx context.Context, dir, name, at, called, tag string) (Image, error) {
	l, err := os.OpenRoot(at)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = l.Close() }() // only read
	file, err := l.Open("index.json")
	if err != nil {
		return Image{}, fmt.Errorf("%s: no OCI image layout: %w", called, err)
	}
	defer file.Close()
	text, err := bounded.Read(file, MaxDocument)
	var index struct {
		Manifests descriptors `json:"manifests"`
	}
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		return Image{}, fmt.Errorf("%s: index.json: %w", called, err)
	}
	return Import(ctx, dir, name, Origin{Source: blobs{l}, Roots: index.Manifests, Tag: tag, Name: "OCI image " + called})
}

// blobs are those of a layout.
type blobs struct{ root *os.Root }

// Blob implements [Source].
func (b blobs) Blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	return b.root.Open("blobs/sha256/" + d.Digest.Encoded())
}

// Import makes an image of what a source has for this machine's platform. Devices, pipes, owners, and setuid and setgid bits are left out, and
// nothing is written outside of the image. Nothing stays of an import that fails or is killed: the next one removes the rest.
func Import(ctx context.Context, dir, name string, o Origin) (Image, error) {
	in := &importer{ctx: ctx, origin: o}
	manifest, d, err := in.manifest()
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", o.Name, err)
	}
	var config struct {
		Config struct{ Env []string } `json:"config"`
	}
	if err := in.document(manifest.Config, &config); err != nil {
		return Image{}, fmt.Errorf("%s: configuration: %w", o.Name, err)
	}
	if n := len(manifest.Layers); n > maxLayers {
		return Image{}, fmt.Errorf("%s: %d layers; at most %d", o.Name, n, maxLayers)
	}
	in.progress.Layers = len(manifest.Layers)
	for n, layer := range manifest.Layers {
		if in.progress.Total += layer.Size; layer.Size < 0 || layer.Size > MaxPacked || in.progress.Total > MaxPacked {
			return Image{}, fmt.Errorf("%s: layer %d: the layers have more than %d bytes", o.Name, n+1, int64(MaxPacked))
		}
	}
	i := Image{Digest: d.String(), Source: o.Name, Env: variables(config.Config.Env)}
	return keep(dir, name, i, func(root string) error {
		u := &unpacker{ctx: ctx, left: maxImage, stream: maxStream, entries: maxEntries, seed: maphash.MakeSeed()}
		var err error
		if u.root, err = os.Open(root); err != nil {
			return err
		}
		defer u.root.Close()
		for n, layer := range manifest.Layers {
			in.progress.Layer = n + 1
			in.tell(true)
			if err := in.layer(u, layer); err != nil {
				return fmt.Errorf("%s: layer %d: %w", o.Name, n+1, err)
			}
		}
		return nil
	})
}

// importer reads what an image consists of.
type importer struct {
	ctx      context.Context //nolint:containedctx // of one import
	origin   Origin
	progress Progress
	told     time.Time
}

func (in *importer) tell(now bool) {
	if in.origin.Progress != nil && (now || time.Since(in.told) > time.Second) {
		in.told = time.Now()
		in.origin.Progress(in.progress)
	}
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

// blob opens a blob. If nothing was wrong so far, finish reads the rest, and says whether all of it has the digest. It closes the blob.
func (in *importer) blob(d v1.Descriptor) (_ io.Reader, finish func(wrong error) error, err error) {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, nil, fmt.Errorf("%.100q is no SHA-256", d.Digest)
	}
	body, err := in.origin.Source.Blob(in.ctx, d)
	if err != nil {
		return nil, nil, err
	}
	verifier := d.Digest.Verifier()
	r := until(in.ctx, io.TeeReader(io.LimitReader(body, d.Size+1), verifier))
	return r, func(wrong error) error {
		if wrong == nil {
			_, wrong = io.Copy(io.Discard, r)
		}
		if wrong == nil && !verifier.Verified() {
			wrong = fmt.Errorf("the blob %s has another digest", d.Digest)
		}
		return errors.Join(wrong, body.Close())
	}, nil
}

// until reads until ctx ends.
func until(ctx context.Context, r io.Reader) io.Reader {
	return reader(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

// reader is a function that reads.
type reader func(p []byte) (int, error)

// Read implements [io.Reader].
func (r reader) Read(p []byte) (int, error) { return r(p) }

// document reads a blob that is JSON.
func (in *importer) document(d v1.Descriptor, to any) error {
	if d.Size < 0 || d.Size > MaxDocument {
		return fmt.Errorf("%d bytes; at most %d", d.Size, MaxDocument)
	}
	r, finish, err := in.blob(d)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err := finish(err); err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// manifest is what an import needs of a manifest.
type manifest struct {
	Config v1.Descriptor `json:"config"`
	Layers descriptors   `json:"layers"`
}

// descriptors are a list of a document, which would take a hundred times as much memory as its text if each could be empty.
type descriptors []v1.Descriptor

// UnmarshalJSON implements [json.Unmarshaler].
func (all *descriptors) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		if begin == nil {
			return err // it is null
		}
		return errors.New("a list of descriptors is no list")
	}
	for *all = (descriptors{}); d.More(); {
		if len(*all) == maxDescriptors {
			return fmt.Errorf("a list has more than %d descriptors", maxDescriptors)
		}
		var one v1.Descriptor
		if err := d.Decode(&one); err != nil {
			return err
		}
		*all = append(*all, one)
	}
	return nil
}

// manifest returns the manifest of the tag for this machine, and its digest.
func (in *importer) manifest() (manifest, digest.Digest, error) {
	all := in.origin.Roots
	if in.origin.Tag != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] != in.origin.Tag })
	}
	for range 8 { // indexes in indexes
		one, err := choose(all)
		if err != nil {
			return manifest{}, "", err
		}
		// The two kinds of documents have no fields in common, so nothing is one to this program and the other to another.
		var both struct {
			manifest
			Manifests descriptors `json:"manifests"`
		}
		if err := in.document(one, &both); err != nil {
			return manifest{}, "", err
		}
		isIndex := strings.Contains(one.MediaType, "index") || strings.Contains(one.MediaType, "manifest.list")
		switch {
		case isIndex && (both.Layers != nil || both.Config.Digest != ""), !isIndex && both.Manifests != nil:
			return manifest{}, "", fmt.Errorf("%s is not what its media type %.100q says", one.Digest, one.MediaType)
		case !isIndex:
			return both.manifest, one.Digest, nil
		}
		all = both.Manifests
	}
	return manifest{}, "", errors.New("indexes name indexes without end")
}

func choose(all []v1.Descriptor) (v1.Descriptor, error) {
	var fit []v1.Descriptor
	for _, one := range all {
		if p := one.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			fit = append(fit, one)
		}
	}
	if plain := slices.DeleteFunc(slices.Clone(fit), func(d v1.Descriptor) bool { return d.Platform == nil || d.Platform.Variant != "" }); len(fit) > 1 && len(plain) == 1 {
		fit = plain // the others are for newer processors
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
	left    int64 // bytes of files
	stream  int64 // bytes of layers, unpacked
	entries int   // with the folders that no entry names
	seed    maphash.Seed
	written map[uint64]bool // paths of this layer, by their hashes
	opaque  map[uint64]bool // folders that this layer begins anew
}

func (in *importer) layer(u *unpacker, d v1.Descriptor) error {
	r, finish, err := in.blob(d)
	if err != nil {
		return err
	}
	return finish(u.unpack(reader(func(p []byte) (int, error) {
		n, err := r.Read(p)
		in.progress.Bytes += int64(n)
		in.tell(false)
		return n, err
	}), d.MediaType))
}

// counted counts what a layer unpacks to.
func (u *unpacker) counted(r io.Reader) io.Reader {
	return until(u.ctx, reader(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if u.stream -= int64(n); u.stream < 0 {
			return 0, fmt.Errorf("the layers unpack to more than %d bytes", int64(maxStream))
		}
		return n, err
	}))
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
	u.written, u.opaque = map[uint64]bool{}, map[uint64]bool{}
	for archive := tar.NewReader(u.counted(r)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, u.ctx.Err(), u.another()); err != nil {
			return err
		}
		if err := u.entry(h, archive); err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

// another counts an entry.
func (u *unpacker) another() error {
	if u.entries--; u.entries < 0 {
		return fmt.Errorf("more than %d entries", maxEntries)
	}
	return nil
}

func (u *unpacker) hash(path string) uint64 { return maphash.String(u.seed, path) }

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	at := path.Clean("/" + h.Name)[1:]
	if at == "" {
		return nil
	}
	if len(at) > 4096 || strings.Count(at, "/") > maxDepth {
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
			return u.anew(folder, parent)
		}
		if hidden == "" || hidden == "." || hidden == ".." {
			return errors.New("it hides nothing that can be there")
		}
		return remove(folder, hidden)
	}
	u.written[u.hash(at)] = true
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

// anew removes what earlier layers put into a folder. That it says so again changes nothing.
func (u *unpacker) anew(folder *os.File, parent string) error {
	if u.opaque[u.hash(parent)] {
		return nil
	}
	u.opaque[u.hash(parent)] = true
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		if err == nil && !u.written[u.hash(parent+name)] {
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
	if err := errors.Join(u.another(), unix.Mkdirat(int(above.Fd()), name, 0o755)); err != nil {
		return nil, err
	}
	return u.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
}

// exchange puts one folder in the place of another, and that into the place of the first, in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
