package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What this program may weigh: a little more than it does. A part that comes raises a number by what it states that it costs. What few
// people need becomes a program of its own, like stile-bench.
const (
	mostBytes    = 58_600_000 // of bin/stile, as make builds it
	mostPackages = 477        // linked, including those of the standard library
)

// elsewhere are the beginnings of packages that belong in a program of its own, or in tests.
var elsewhere = []string{
	"gonum.org/", "codeberg.org/go-", "github.com/stilehost/stile/bench", // stile-bench
	"github.com/sigstore/", "google.golang.org/", "go.opentelemetry.io/", "github.com/stilehost/stile/extension/pack/sigstore", // stile-sigstore
	"github.com/chromedp/", "github.com/openai/", "github.com/anthropics/",
}

// TestLinkedPackages holds what this program is made of.
func TestLinkedPackages(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) > mostPackages {
		t.Errorf("%d packages are linked, and %d are allowed: go list -deps ./cmd/stile names them", len(packages), mostPackages)
	}
	for _, p := range packages {
		for _, prefix := range elsewhere {
			if strings.HasPrefix(p, prefix) {
				t.Errorf("%s is linked, which belongs in a program of its own or in tests", p)
			}
		}
	}
}

// Packages that allocate more than muchMemory before main begins are named here. One that comes to allocate less than littleMemory is
// taken off. Every command waits for them, whatever it does.
const (
	muchMemory   = 24 << 10 // bytes
	littleMemory = 12 << 10
)

var initialised = []string{
	"encoding/gob",
	"github.com/CycloneDX/cyclonedx-go",
	"github.com/evanw/esbuild/internal/compat",
	"github.com/google/jsonschema-go/jsonschema",
	"github.com/klauspost/compress/flate",
	"github.com/opencontainers/go-digest",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"github.com/stilehost/stile/abi",
	"go.yaml.in/yaml/v3",
	"oras.land/oras-go/v2/registry",
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, \d+ allocs$`)

// TestWeight holds the size of this program as make builds it, and which packages do work before it begins.
func TestWeight(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), "build-stile", "BIN="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program := filepath.Join(dir, "stile")
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostBytes {
		t.Errorf("bin/stile has %d bytes, and %d are allowed: go tool nm -size -sort size names what is large in a program with tables for debuggers", info.Size(), mostBytes)
	}

	cmd := exec.CommandContext(t.Context(), program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, trace.String())
	}
	allocated := map[string]int{}
	for _, m := range initLine.FindAllStringSubmatch(trace.String(), -1) {
		if allocated[m[1]], err = strconv.Atoi(m[2]); err != nil {
			t.Fatal(err)
		}
	}
	if len(allocated) < 50 {
		t.Fatalf("this is no list of packages: %s", trace.String())
	}
	for _, p := range slices.Sorted(maps.Keys(allocated)) {
		if bytes := allocated[p]; bytes > muchMemory && !slices.Contains(initialised, p) {
			t.Errorf("%s allocates %d bytes before main begins; have it do so at first use", p, bytes)
		}
	}
	for _, p := range initialised {
		if bytes := allocated[p]; bytes < littleMemory {
			t.Errorf("%s allocates only %d bytes before main begins; take it off the list", p, bytes)
		}
	}
}
