// Command long runs the tests that take minutes and writes a report of the results, with the commit, the date and a digest of the
// code that they cover. With -check it says where that code has changed since. Arguments are packages, such as "./host"; the report
// keeps its entries for other packages. Default: every package that has such tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// report is the outcome of runs in which every test passed.
type report struct {
	// Packages are those with long tests, by import path.
	Packages map[string]tested `json:"packages"`
}

// tested is a package whose long tests passed.
type tested struct {
	// Commit is what was tested, with nothing changed in the code that the tests cover.
	Commit string    `json:"commit"`
	Date   time.Time `json:"date"`
	Go     string    `json:"go"`
	// Minutes are how long each test took, on a machine that may have done other things too.
	Minutes map[string]float64 `json:"minutes"`
	// Code is the digest of each folder of this module that the tests are built from, by its path.
	Code map[string]string `json:"code"`
}

func main() {
	root := flag.String("root", "..", "folder of the module that is tested")
	file := flag.String("report", "results/long.json", "the report")
	check := flag.Bool("check", false, "run nothing: say where the code that the report covers has changed")
	flag.Parse()
	do := func() error { return run(context.Background(), os.Stdout, *root, *file, flag.Args()...) }
	if *check {
		do = func() error { return compare(context.Background(), os.Stdout, *root, *file) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
}

// read reads the report.
func read(file string) (r report, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrNotExist) {
		return report{}, fmt.Errorf("there is no report %s; make long writes it: %w", filepath.Base(file), err)
	} else if err != nil {
		return report{}, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return report{}, fmt.Errorf("read %s: %w", filepath.Base(file), err)
	}
	return r, nil
}

// run runs the long tests of a module, or of some of its packages, and writes the report, unless one fails.
func run(ctx context.Context, out io.Writer, root, file string, only ...string) error {
	packages, err := longPackages(ctx, root, only...)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("there are no files *_long_test.go")
	}
	r := report{Packages: map[string]tested{}}
	if len(only) > 0 {
		if r, err = read(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if r.Packages == nil {
			r.Packages = map[string]tested{}
		}
	}
	made := tested{Date: time.Now().UTC().Truncate(time.Second)}
	if made.Commit, err = commit(ctx, root); err != nil {
		return err
	}
	if made.Go, err = output(ctx, root, "go", "env", "GOVERSION"); err != nil {
		return err
	}
	code := map[string]map[string]string{}
	for _, p := range packages {
		if code[p], err = coverage(ctx, root, p); err != nil {
			return err
		}
	}
	if err := unchanged(ctx, root, code); err != nil {
		return err
	}
	minutes, err := test(ctx, out, root, packages)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if len(minutes[p]) == 0 {
			return fmt.Errorf("%s has a file *_long_test.go and no test that is named TestLong", p)
		}
		after, err := coverage(ctx, root, p)
		if err != nil {
			return err
		}
		if changed := difference(code[p], after); len(changed) > 0 {
			return fmt.Errorf("%s changed during the run; run it again", changed[0])
		}
		made.Minutes, made.Code = minutes[p], after
		r.Packages[p] = made
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // it is for everybody
}

// compare says which code has changed since the report. Changed code is not an error, but a package without a report is.
func compare(ctx context.Context, out io.Writer, root, file string) error {
	r, err := read(file)
	if err != nil {
		return err
	}
	packages, err := longPackages(ctx, root)
	if err != nil {
		return err
	}
	for _, p := range packages {
		was, ok := r.Packages[p]
		if !ok {
			return fmt.Errorf("%s does not cover %s; run make long and commit the report", filepath.Base(file), p)
		}
		now, err := coverage(ctx, root, p)
		if err != nil {
			return err
		}
		folders := difference(was.Code, now)
		if len(folders) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "stale: since make long tested %s, at %.12s on %s, this has changed: %s\n", p, was.Commit, was.Date.Format(time.DateOnly), strings.Join(folders, ", ")); err != nil {
			return err
		}
	}
	return nil
}
