package npm

import (
	"bytes"
	"encoding/json"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestSBOM(t *testing.T) {
	packages := []Package{
		{Name: "@scope/p", Version: "1.0.0+b", Integrity: someDigest, License: "(MIT OR Apache-2.0)", Signature: SignatureVerified},
		{Name: "q", Version: "2.0.0-rc.1", Integrity: someDigest, Signature: SignatureNotOffered},
	}
	text, err := SBOM("my-notes", "1.2.0", packages)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Metadata.Component.Name != "my-notes" || bom.Metadata.Component.Version != "1.2.0" || len(*bom.Components) != 2 {
		t.Errorf("%s", text)
	}
	first := (*bom.Components)[0]
	if first.Group != "@scope" || first.Name != "p" || first.PackageURL != "pkg:npm/%40scope/p@1.0.0%2Bb" || (*first.Hashes)[0].Value[:8] != "cf83e135" || (*first.Licenses)[0].License.Name != "(MIT OR Apache-2.0)" {
		t.Errorf("%+v", first)
	}
	if again, err := SBOM("my-notes", "1.2.0", packages); err != nil || !bytes.Equal(text, again) || !json.Valid(text) {
		t.Error("the same packages give another document")
	}
	if _, err := SBOM("x", "1.0.0", []Package{{Name: "p", Version: "1.0.0", Integrity: "sha512-!"}}); err == nil {
		t.Error("a digest that is none was written")
	}
}
