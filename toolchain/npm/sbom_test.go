package npm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkSBOM compares a document with the schema of CycloneDX 1.6, which comes with the library.
func checkSBOM(t *testing.T, text []byte) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for _, file := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		url, _ := schema.(map[string]any)["$id"].(string)
		if err := compiler.AddResource(url, schema); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("%v in %s", err, text)
	}
}

// An SBOM has licences as SPDX names them, and which package needs which, as node finds them.
func TestSBOM(t *testing.T) {
	entry := func(fields string) string {
		return `{"version": "1.0.0", "integrity": "` + someDigest + `"` + fields + `}`
	}
	lock := []byte(`{"lockfileVersion": 3, "packages": {
		"": {"dependencies": {"@scope/p": "^1.0.0", "q": "1"}},
		"node_modules/@scope/p": ` + entry(`, "dependencies": {"q": "2", "native": "1"}, "peerDependencies": {"r": "*", "missing": "*"}, "optionalDependencies": {"native": "1"}`) + `,
		"node_modules/@scope/p/node_modules/q": {"version": "2.0.0-rc.1", "integrity": "` + someDigest + `", "dependencies": {"r": "*"}},
		"node_modules/q": ` + entry("") + `,
		"node_modules/native": ` + entry(`, "optional": true`) + `,
		"node_modules/r": ` + entry(`, "name": "other", "dependencies": {"q": "*"}`) + `}}`)
	packages := []Package{
		{Name: "@scope/p", Version: "1.0.0", Integrity: someDigest, License: "(MIT OR Apache-2.0)", Signature: SignatureVerified},
		{Name: "other", Version: "1.0.0", Integrity: someDigest, License: "SEE LICENSE IN x", Signature: SignatureNotOffered},
		{Name: "q", Version: "1.0.0", Integrity: someDigest, License: "mit", Signature: SignatureNotOffered},
		{Name: "q", Version: "2.0.0-rc.1", Integrity: someDigest, License: "GPL-2.0", Signature: SignatureNotOffered},
	}
	text, err := SBOM("my-notes", "1.2.0", packages, lock)
	if err != nil {
		t.Fatal(err)
	}
	checkSBOM(t, text)
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Metadata.Component.Name != "my-notes" || bom.Metadata.Component.Version != "1.2.0" || len(*bom.Components) != 4 {
		t.Errorf("%s", text)
	}
	first := (*bom.Components)[0]
	if first.Group != "@scope" || first.Name != "p" || first.PackageURL != "pkg:npm/%40scope/p@1.0.0" || (*first.Hashes)[0].Value[:8] != "cf83e135" {
		t.Errorf("%+v", first)
	}
	var licences []string
	for _, c := range *bom.Components {
		choice := (*c.Licenses)[0]
		if choice.License == nil {
			choice.License = &cdx.License{}
		}
		licences = append(licences, fmt.Sprintf("%s|%s|%s", choice.License.ID, choice.Expression, choice.License.Name))
	}
	if want := []string{"|(MIT OR Apache-2.0)|", "||SEE LICENSE IN x", "MIT||", "GPL-2.0||"}; !slices.Equal(licences, want) {
		t.Errorf("got licences %q, want %q", licences, want)
	}
	graph := map[string]string{}
	if bom.Dependencies == nil {
		t.Fatal("there are no dependencies")
	}
	for _, d := range *bom.Dependencies {
		graph[d.Ref] = ""
		if d.Dependencies != nil {
			graph[d.Ref] = strings.Join(*d.Dependencies, " ")
		}
	}
	const p, q1, q2, r = "pkg:npm/%40scope/p@1.0.0", "pkg:npm/q@1.0.0", "pkg:npm/q@2.0.0-rc.1", "pkg:npm/other@1.0.0"
	for ref, want := range map[string]string{bom.Metadata.Component.BOMRef: p + " " + q1, p: r + " " + q2, q1: "", q2: r, r: q1} {
		if got, ok := graph[ref]; !ok || got != want {
			t.Errorf("%s needs %q, want %q", ref, got, want)
		}
	}
	if len(graph) != 5 {
		t.Errorf("got %v", graph)
	}
	if again, err := SBOM("my-notes", "1.2.0", packages, lock); err != nil || !bytes.Equal(text, again) || !json.Valid(text) {
		t.Error("the same packages give another document")
	}
	if none, err := SBOM("my-notes", "1.2.0", nil, nil); err != nil {
		t.Error(err)
	} else {
		checkSBOM(t, none)
	}
	if _, err := SBOM("x", "1.0.0", []Package{{Name: "p", Version: "1.0.0", Integrity: "sha512-!"}}, nil); err == nil {
		t.Error("a digest that is none was written")
	}
	if _, err := SBOM("x", "1.0.0", nil, []byte(`{`)); err == nil {
		t.Error("a lockfile that is none was read")
	}
}

// A package's licence field is untrusted text.
func FuzzLicenseChoice(f *testing.F) {
	for _, text := range []string{"MIT", "(MIT OR Apache-2.0+) AND GPL-2.0-only WITH Classpath-exception-2.0", "DocumentRef-a:LicenseRef-b", "((", "MIT WITH", "UNLICENSED"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= 200 {
			licenseChoice(text)
		}
	})
}
