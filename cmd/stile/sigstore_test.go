package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/sha256hex"
)

// buildSigstore builds the program that verifies bundles and the one that makes them for tests, and returns the folder with both. The
// folder outlives the test, because linking takes seconds. Their module has libraries that this one must not have.
func buildSigstore(t *testing.T) string {
	t.Helper()
	module, err := filepath.Abs(filepath.Join("..", "..", "extension", "pack", "sigstore"))
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := cachetest.Dirs(t)
	dir := filepath.Join(filepath.Dir(cache), "programs", sha256hex.Of([]byte(module))[:12])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "-C", module, "build", "-ldflags=-s -w", "-o", dir, "./cmd/stile-sigstore", "./sigstoretest/cosign")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// sigstore is a Sigstore of the tests, in a separate process.
type sigstore struct {
	mutex sync.Mutex
	ask   *json.Encoder
	told  *json.Decoder
}

func startSigstore(t *testing.T, program string) *sigstore {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program) // it ends with its input
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &sigstore{ask: json.NewEncoder(in), told: json.NewDecoder(out)}
}

// text requests a bundle signed by an identity, or the trusted root.
func (n *sigstore) text(ts *testscript.TestScript, command, identity, issuer string, what []byte) (text json.RawMessage) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	ts.Check(n.ask.Encode(map[string]any{"Command": command, "Identity": identity, "Issuer": issuer, "What": what}))
	ts.Check(n.told.Decode(&text))
	return text
}

// cosign does what the cosign program does, with a Sigstore of the tests:
//
//	cosign sign-blob FILE IDENTITY ISSUER   writes FILE.sigstore.json
//	cosign sign REFERENCE IDENTITY ISSUER   attaches a bundle to what a registry has, by digest
//	cosign trusted-root FILE                writes the trusted root
func cosign(n *sigstore) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		switch {
		case !neg && len(args) == 2 && args[0] == "trusted-root":
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), n.text(ts, args[0], "", "", nil), 0o600))
		case !neg && len(args) == 4 && args[0] == "sign-blob":
			file, err := os.ReadFile(ts.MkAbs(args[1]))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[1]+".sigstore.json"), n.text(ts, args[0], args[2], args[3], file), 0o600))
		case !neg && len(args) == 4 && args[0] == "sign":
			ts.Check(attachBundle(ts, n, args[1], args[2], args[3]))
		default:
			ts.Fatalf("usage: cosign trusted-root FILE, cosign sign-blob FILE IDENTITY ISSUER or cosign sign REFERENCE IDENTITY ISSUER")
		}
	}
}

func attachBundle(ts *testscript.TestScript, n *sigstore, reference, identity, issuer string) error {
	ctx := context.Background()
	r, err := remote.NewRepository(reference)
	if err != nil {
		return err
	}
	r.PlainHTTP = true
	r.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	subject, body, err := r.FetchReference(ctx, r.Reference.Reference)
	if err != nil {
		return err
	}
	manifest, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	ts.Check(body.Close())
	text := n.text(ts, "sign", identity, issuer, manifest)
	layer := content.NewDescriptorFromBytes(pack.BundleType, text)
	if err := r.Push(ctx, layer, bytes.NewReader(text)); err != nil {
		return err
	}
	// The registry of the tests lists artifacts by the type of the config.
	config := content.NewDescriptorFromBytes(pack.BundleType, ocispec.DescriptorEmptyJSON.Data)
	if err := r.Push(ctx, config, bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)); err != nil {
		return err
	}
	_, err = oras.PackManifest(ctx, r, oras.PackManifestVersion1_1, pack.BundleType, oras.PackManifestOptions{
		Subject: &subject, ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer},
	})
	return err
}
