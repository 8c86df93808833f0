package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const tag = "long"

// output runs a command in a folder and returns what it prints, without space around it.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir                             string
	Module                                      *struct{ Main bool }
	TestGoFiles, XTestGoFiles                   []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
}

// list asks go list about packages.
func list(ctx context.Context, root string, args ...string) (all []listed, err error) {
	const fields = "-json=ImportPath,Dir,Module,TestGoFiles,XTestGoFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles"
	text, err := output(ctx, root, "go", append([]string{"list", "-tags", tag, fields}, args...)...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		all = append(all, p)
	}
}

// longPackages are the packages of a module that have long tests, in order; only those that match some patterns, if there are any.
func longPackages(ctx context.Context, root string, only ...string) (packages []string, err error) {
	if len(only) == 0 {
		only = []string{"./..."}
	}
	all, err := list(ctx, root, only...)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if slices.ContainsFunc(slices.Concat(p.TestGoFiles, p.XTestGoFiles), func(name string) bool { return strings.HasSuffix(name, "_long_test.go") }) {
			packages = append(packages, p.ImportPath)
		}
	}
	return packages, nil
}

// coverage returns the digests of what the tests of a package are built from, by path in root: of each folder of a package of the module its files and
// its testdata, of each folder below that is embedded its files, and the versions of other modules.
func coverage(ctx context.Context, root, pkg string) (digests map[string]string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	packages, err := list(ctx, root, "-deps", "-test", pkg)
	if err != nil {
		return nil, err
	}
	files := map[string]map[string]bool{} // by folder
	add := func(folder, name string) {
		if files[folder] == nil {
			files[folder] = map[string]bool{}
		}
		files[folder][name] = true
	}
	add("go.mod", "go.mod")
	if _, err := os.Stat(filepath.Join(root, "go.sum")); err == nil {
		add("go.mod", "go.sum")
	}
	for _, p := range packages {
		if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		folder, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		folder = filepath.ToSlash(folder)
		if files[folder] != nil {
			continue
		}
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() {
				add(folder, path.Join(folder, e.Name()))
			}
		}
		for _, name := range slices.Concat(p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles) {
			add(folder, path.Join(folder, name))
		}
		err = fs.WalkDir(os.DirFS(p.Dir), "testdata", func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				add(folder, path.Join(folder, name))
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	digests = map[string]string{}
	for folder, names := range files {
		sum := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(names)) {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))) //nolint:gosec // a file of the module
			if err != nil {
				return nil, err
			}
			_, _ = fmt.Fprintf(sum, "%x %s\n", sha256.Sum256(content), name)
		}
		digests[folder] = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return digests, nil
}

// difference names the folders whose digests differ, in order.
func difference(was, now map[string]string) (folders []string) {
	for folder, digest := range now {
		if was[folder] != digest {
			folders = append(folders, folder)
		}
	}
	for folder := range was {
		if _, ok := now[folder]; !ok {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}

func commit(ctx context.Context, root string) (string, error) {
	return output(ctx, root, "git", "rev-parse", "HEAD")
}

// unchanged fails if the code that tests cover is not that of the commit.
func unchanged(ctx context.Context, root string, code map[string]map[string]string) error {
	args := []string{"status", "--porcelain", "--"}
	folders := map[string]bool{}
	for _, digests := range code {
		for folder := range digests {
			folders[folder] = true
		}
	}
	changed, err := output(ctx, root, "git", append(args, slices.Sorted(maps.Keys(folders))...)...)
	if err != nil {
		return err
	}
	if changed != "" {
		first, _, _ := strings.Cut(changed, "\n")
		return fmt.Errorf("the code that the tests cover is not committed: %s; commit it, so that the report can name it", strings.TrimSpace(first))
	}
	return nil
}
