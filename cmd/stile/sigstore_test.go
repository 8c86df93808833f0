package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/sigstoretest"
)

// cosign is what that program does with a Sigstore of the tests:
//
//	cosign sign-blob FILE IDENTITY ISSUER   writes FILE.sigstore.json
//	cosign sign REFERENCE IDENTITY ISSUER   attaches a bundle to what a registry has, by digest
//	cosign trusted-root FILE                writes the trusted root
func cosign(n *sigstoretest.Network) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		switch {
		case !neg && len(args) == 2 && args[0] == "trusted-root":
			b, err := n.Root(sigstoretest.Parts{Log: true, Timestamps: true})
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
		case !neg && len(args) == 4 && args[0] == "sign-blob":
			file, err := os.ReadFile(ts.MkAbs(args[1]))
			ts.Check(err)
			b, err := n.SignBlob(args[2], args[3], file, time.Now().Add(time.Minute))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[1]+".sigstore.json"), bundleText(ts, b), 0o600))
		case !neg && len(args) == 4 && args[0] == "sign":
			ts.Check(attachBundle(ts, n, args[1], args[2], args[3]))
		default:
			ts.Fatalf("usage: cosign trusted-root FILE, cosign sign-blob FILE IDENTITY ISSUER or cosign sign REFERENCE IDENTITY ISSUER")
		}
	}
}

func bundleText(ts *testscript.TestScript, b *protobundle.Bundle) []byte {
	text, err := protojson.Marshal(b)
	ts.Check(err)
	return text
}

func attachBundle(ts *testscript.TestScript, n *sigstoretest.Network, reference, identity, issuer string) error {
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
	b, err := n.Attest(identity, issuer, "https://sigstore.dev/cosign/sign/v1", manifest, 2)
	if err != nil {
		return err
	}
	text := bundleText(ts, b)
	layer := content.NewDescriptorFromBytes(pack.BundleType, text)
	if err := r.Push(ctx, layer, bytes.NewReader(text)); err != nil {
		return err
	}
	// The registry of the tests lists by the type of the config.
	config := content.NewDescriptorFromBytes(pack.BundleType, ocispec.DescriptorEmptyJSON.Data)
	if err := r.Push(ctx, config, bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)); err != nil {
		return err
	}
	_, err = oras.PackManifest(ctx, r, oras.PackManifestVersion1_1, pack.BundleType, oras.PackManifestOptions{
		Subject: &subject, ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer},
	})
	return err
}
