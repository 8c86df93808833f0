package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/bundle"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/toolchain/npm"
)

// maxKey is the largest file with a key, in bytes.
const maxKey = 64 << 10

type extSBOM struct {
	chosenVersion
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*extSBOM) Help() string {
	return `The output is CycloneDX 1.6 in JSON, with licences, digests and dependencies. There is none for a component without source.

Examples:

    stile ext sbom github > github.cdx.json`
}

// Run implements the command.
func (c *extSBOM) Run(ctx context.Context, s *streams) error {
	return withExtensions(ctx, s, func(e *extensions) error {
		v, err := c.version(ctx, e)
		if err != nil {
			return err
		}
		if !v.HasSource() {
			return usagef("%s is a component without source, so what it is made of is not known", line(c.Name, 64))
		}
		text, err := npm.SBOM(v.Manifest.Name, v.Manifest.Version, v.Packages, v.Lock)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s\n", escape(bytes.TrimRight(text, "\n")))
		return err
	})
}

type extExport struct {
	chosenVersion
	Output string `short:"o" required:"" placeholder:"FILE" help:"File to write, or oci://REGISTRY/REPOSITORY:TAG to push to."`
	registryFlags
	Sign   string `placeholder:"KEY" help:"File with an Ed25519 private key, in PEM, to sign with: openssl genpkey -algorithm ed25519 makes one."`
	As     string `placeholder:"NAME" help:"Who signs, such as an email address. Default: user:NAME."`
	Bundle string `placeholder:"FILE" help:"Sigstore bundle to write as well: a signature of the whole file, or of the manifest in a registry, with the key of --sign."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*extExport) Help() string {
	return `The file holds manifest, source, lockfile, component, bill of materials, and the signature if there is one. It is an OCI image layout, so registry tools can read it. --sign needs the whole digest if it comes with --digest.

Examples:

    stile ext export github -o github.stile
    stile ext export github -o github.stile --sign key.pem --as tom@example.com
    stile ext export github -o github.stile --sign key.pem --bundle github.stile.sigstore.json
    stile ext export github -o oci://registry.example.com/tools/github:1.2.0 --sign key.pem --registry-user tom --registry-secret registry`
}

// Run implements the command.
func (c *extExport) Run(ctx context.Context, s *streams) error {
	if c.Sign != "" {
		if err := checkDigest(c.Digest, "stile ext history "+line(c.Name, 64)+" --json"); err != nil {
			return err
		}
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		v, err := c.version(ctx, e)
		if err != nil {
			return err
		}
		p, err := e.Export(ctx, v.Digest)
		if err != nil {
			return err
		}
		digest, err := p.Digest()
		if err != nil {
			return err
		}
		var key ed25519.PrivateKey
		var signatures []pack.Signature
		switch {
		case c.Sign != "":
			if key, err = c.key(); err != nil {
				return err
			}
			signature, err := c.sign(e.settings, key, digest)
			if err != nil {
				return err
			}
			signatures = append(signatures, signature)
		case c.Bundle != "":
			return usagef("--bundle needs --sign with a key; to make a bundle without a key, use cosign sign-blob")
		}
		if ref, ok := strings.CutPrefix(c.Output, ociScheme); ok {
			return c.push(ctx, s, e, ref, p, digest, key, signatures)
		}
		var file bytes.Buffer
		if err := pack.Write(&file, p, signatures...); err != nil {
			return err
		}
		if err := writeFile(c.Output, file.Bytes()); err != nil {
			return err
		}
		if c.Bundle != "" {
			if err := writeBundle(c.Bundle, key, file.Bytes()); err != nil {
				return err
			}
		}
		if c.JSON {
			return printJSON(s.out, struct {
				File   string `json:"file"`
				Size   int    `json:"size"`
				Digest string `json:"digest"`
				Signed bool   `json:"signed"`
			}{c.Output, file.Len(), digest, c.Sign != ""})
		}
		_, err = fmt.Fprintf(s.out, "%s: %d bytes, %s\n", c.Output, file.Len(), digest)
		return err
	})
}

func (c *extExport) key() (ed25519.PrivateKey, error) {
	text, err := readFile(c.Sign, maxKey)
	if err != nil {
		return nil, err
	}
	key, err := pack.ParsePrivateKey(text)
	if err != nil {
		err = usagef("--sign %s: %w", c.Sign, err)
	}
	return key, err
}

func (c *extExport) sign(where settings, key ed25519.PrivateKey, digest string) (signature pack.Signature, err error) {
	if c.As == "" {
		if c.As, err = where.author(); err != nil {
			return nil, err
		}
	}
	signature, err = pack.Sign(key, digest, c.As, time.Now())
	if err != nil {
		err = usagef("--as: %w", err)
	}
	return signature, err
}

type extImport struct {
	File  string   `arg:"" help:"File that stile ext export wrote, or the oci://REGISTRY/REPOSITORY:TAG or @DIGEST that it pushed."`
	Trust []string `sep:"none" placeholder:"KEY" help:"File with an Ed25519 public key, in PEM. The file must be signed with one of these keys. Can be repeated."`
	bundleFlags
	registryFlags
	addFlags
}

// Help implements kong.HelpProvider.
func (*extImport) Help() string {
	return `An imported version goes through the same steps as stile ext add: it is built here from its source, and approved like any other version. A component without source is taken as it is. --trust verifies a signature. Sigstore bundles work too, without a network. A signature says who made the file and grants nothing; the key's holder chose the name in it. Every check that you ask for must succeed.

Examples:

    stile ext import github.stile
    stile ext import github.stile --trust tom.pem --scope shared
    stile ext import github.stile --bundle github.stile.sigstore.json --key tom.pem
    stile ext import github.stile --bundle github.stile.sigstore.json --trusted-root trusted_root.json --certificate-identity tom@example.com --certificate-oidc-issuer https://accounts.example.com
    stile ext import oci://registry.example.com/tools/github:1.2.0 --trust tom.pem`
}

// untrustedError reports a pack that none of the required signers has signed.
type untrustedError struct{ error }

func (e *untrustedError) Unwrap() error { return e.error }

// Run implements the command.
func (c *extImport) Run(ctx context.Context, s *streams) error {
	trusted, err := c.trusted()
	if err != nil {
		return err
	}
	verifier, err := c.verifier(ctx, c.File)
	if err != nil {
		return err
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		in, err := c.read(ctx, s, e, verifier != nil)
		if err != nil {
			return err
		}
		var d lifecycle.Draft
		if err := c.fill(s, e, &d); err != nil {
			return err
		}
		if d.Signer, err = c.verify(ctx, s, in, trusted, verifier); err != nil {
			return errors.Join(err, e.Refuse(ctx, d, err.Error()))
		}
		in.signed = nil // it may be large
		if in.pack.HasSource() {
			in.pack.Component = nil // likewise, and it is built here
		}
		d.Component = in.pack.Component
		d.Origin = "the pack " + line(c.File, 200)
		w, err := e.Import(ctx, in.pack, d)
		if err != nil {
			return err
		}
		return c.finish(ctx, s, e, w)
	})
}

func (c *extImport) trusted() (keys []ed25519.PublicKey, err error) {
	for _, file := range c.Trust {
		text, err := readFile(file, maxKey)
		if err != nil {
			return nil, err
		}
		key, err := pack.ParsePublicKey(text)
		if err != nil {
			return nil, usagef("--trust %s: %w", file, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// incoming is a pack with its signatures: those in it, bundles, and the bytes that a bundle signs.
type incoming struct {
	pack       *pack.Pack
	signatures []pack.Signature
	bundles    [][]byte
	signed     []byte
}

// read reads the file, or pulls from a registry. If whole is set, it keeps the bytes that a bundle signs.
func (c *extImport) read(ctx context.Context, s *streams, e *extensions, whole bool) (in *incoming, err error) {
	if ref, ok := strings.CutPrefix(c.File, ociScheme); ok {
		in, err = c.pull(ctx, s, e, ref)
	} else {
		in, err = c.open(ctx, whole)
	}
	if err == nil && c.Bundle != "" {
		var b []byte
		b, err = readFile(c.Bundle, pack.MaxBundle)
		in.bundles = [][]byte{b}
	}
	return in, err
}

// packLimits are the bounds of an extension.
var packLimits = pack.Limits{Component: maxComponent, Source: extension.MaxSource, Files: extension.MaxFiles}

func (c *extImport) open(ctx context.Context, whole bool) (*incoming, error) {
	in := &incoming{}
	content, err := interruptible(ctx, func() (_ []byte, err error) {
		f, err := openFile(c.File)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		var content []byte
		from := io.Reader(f)
		if whole {
			if content, err = bounded.Read(f, packLimits.Size()); err != nil {
				return nil, usagef("%s: %w", c.File, err)
			}
			from = bytes.NewReader(content)
		}
		if in.pack, in.signatures, err = pack.Read(from, packLimits); err != nil {
			return nil, usagef("%s: %w", c.File, err)
		}
		return content, nil
	})
	if err != nil {
		return nil, err // before in is read, because it may still be written to
	}
	in.signed = content
	return in, nil
}

// verify returns who signed a pack. It returns nobody if no signature was asked for.
func (c *extImport) verify(ctx context.Context, s *streams, in *incoming, trusted []ed25519.PublicKey, verifier *bundle.Verifier) (string, error) {
	var signers []string
	if len(trusted) > 0 {
		by, err := pack.Verify(in.pack, in.signatures, trusted)
		if err != nil {
			return "", &untrustedError{fmt.Errorf("%s has no signature of a trusted key: %w", c.File, err)}
		}
		// The signer's name is only the key's claim, and another trusted key may claim the same. It is quoted, because it could read like
		// a second signer.
		key := c.Trust[slices.IndexFunc(trusted, func(k ed25519.PublicKey) bool { return k.Equal(by.Key) })]
		signers = append(signers, fmt.Sprintf("%q on %s with the key of %s", line(by.Who, 200), when(by.When), line(key, 200)))
	}
	if verifier != nil {
		by, err := verifier.Verify(ctx, in.bundles, in.signed)
		if errkind.Is[*pack.PartError](err) {
			err = &untrustedError{fmt.Errorf("%s has no Sigstore bundle that the flags accept: %w", c.File, err)}
		}
		if err != nil {
			return "", err
		}
		signers = append(signers, line(by.String(), 400))
	}
	if len(signers) == 0 {
		s.say("stile: no signature was checked; use --trust, --certificate-identity or --key to check one")
		return "", nil
	}
	signer := strings.Join(signers, "; ")
	s.say("stile: signed by %s", signer)
	return signer, nil
}
