package lifecycle

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/pack"
)

// One store exports a version to a file, and another one imports the same version. An import activates nothing
// that would require a person's approval.
func TestExportAndImport(t *testing.T) {
	from := newHome(t).open()
	w := write(t, from, draft("notes", `((await env.kv.set("k", "v")), 1)`, `{"kv": true}`))
	p, err := from.Export(t.Context(), w.Version.Digest[:12])
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := pack.Write(&file, p); err != nil {
		t.Fatal(err)
	}
	read, _, err := pack.Read(&file, pack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	to := newHome(t).open()
	d := Draft{Scope: own, Author: "agent:a", Via: "test", Signer: "tom\x1b\n" + strings.Repeat("m", 1000)}
	got, err := to.Import(t.Context(), read, d)
	if err != nil {
		t.Fatal(err)
	}
	signer := got.Release.Signer
	if !strings.HasPrefix(signer, "tom") || strings.ContainsAny(signer, "\x1b\n") || len(signer) > 600 {
		t.Errorf("signed by %q", signer)
	}
	if log, err := to.Audit(t.Context(), 1); err != nil || log[0].Kind != "write" || log[0].Signer != signer {
		t.Errorf("got %+v, %v", log, err)
	}
	// Writing the same content without a signature does not remove the signature.
	d.Signer = ""
	if got, err = to.Import(t.Context(), read, d); err != nil {
		t.Fatal(err)
	}
	if review, err := to.Review(t.Context(), got.Release.ID); err != nil || review.Release.Signer != signer {
		t.Errorf("got %+v, %v", review.Release, err)
	}
	if got.Version.Digest != w.Version.Digest || got.Version.Component != w.Version.Component || got.Release.State != Pending {
		t.Errorf("got %+v", got.Release)
	}
	approve(t, to, got.Release)
	says(t, to, "notes_get", "1")
	if _, _, err := to.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := to.Promote(t.Context(), own, extension.Scope{Kind: extension.Shared}, "notes", "agent:a", "test"); err != nil || !strings.HasPrefix(r.Signer, signer[:400]) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The source of a pack runs, and not its component.
func TestImportOfAnotherComponent(t *testing.T) {
	m := newHome(t).open()
	one, two := write(t, m, draft("notes", "1", "")), write(t, m, draft("other", "2", ""))
	p, err := m.Export(t.Context(), one.Version.Digest)
	if err != nil {
		t.Fatal(err)
	}
	q, err := m.Export(t.Context(), two.Version.Digest)
	if err != nil {
		t.Fatal(err)
	}
	p.Component = q.Component
	if _, err := m.Import(t.Context(), p, Draft{Scope: own, Author: "agent:a"}); err != nil {
		t.Fatal(err)
	}
	says(t, m, "notes_get", "1")
}
