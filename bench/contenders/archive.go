package contenders

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stilehost/stile/bench"
)

// imageName is the name of the image in an archive.
const imageName = "localhost/stile-bench:tool"

// writeImage makes a root file system of copied files, by their path in it, and of texts, and an archive of it.
func writeImage(dir string, copies, texts map[string]string) error {
	root := filepath.Join(dir, "root")
	for _, empty := range []string{"proc", "dev", "sys", "tmp", "etc", filesDir} {
		if err := os.MkdirAll(filepath.Join(root, empty), 0o755); err != nil {
			return err
		}
	}
	for to, from := range copies {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := bench.WriteFiles(root, map[string]string{to: string(content)}); err != nil {
			return err
		}
	}
	if err := bench.WriteFiles(root, texts); err != nil {
		return err
	}
	return errors.Join(writeArchive(root, filepath.Join(dir, "layer.tar"), filepath.Join(dir, "image.tar")), os.Remove(filepath.Join(dir, "layer.tar")))
}

// writeArchive writes a folder as the only layer of an image.
func writeArchive(root, layer, archive string) error {
	hash := sha256.New()
	err := writeTar(layer, func(to *tar.Writer) error { return to.AddFS(os.DirFS(root)) }, hash)
	if err != nil {
		return err
	}
	config, _ := json.Marshal(map[string]any{ // maps of strings can be marshalled
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": []string{"PATH=/usr/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", hash.Sum(nil))}},
	})
	manifest, _ := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{imageName}, "Layers": []string{"layer.tar"}},
	})
	return writeTar(archive, func(to *tar.Writer) error {
		for name, content := range map[string]string{"config.json": string(config), "manifest.json": string(manifest)} {
			if err := addToTar(to, name, int64(len(content)), strings.NewReader(content)); err != nil {
				return err
			}
		}
		f, err := os.Open(layer)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return addToTar(to, "layer.tar", info.Size(), f)
	}, io.Discard)
}

// writeTar makes a tar file of what fill adds, and also writes it to another writer.
func writeTar(path string, fill func(*tar.Writer) error, also io.Writer) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	to := tar.NewWriter(io.MultiWriter(f, also))
	return errors.Join(fill(to), to.Close(), f.Close())
}

func addToTar(to *tar.Writer, name string, size int64, content io.Reader) error {
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(to, content)
	return err
}
