package npm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// SBOM lists the packages of one version of an extension as CycloneDX 1.6 in JSON. The same packages give the same bytes:
// it has neither a serial number nor a time.
func SBOM(name, version string, packages []Package) ([]byte, error) {
	components := make([]cdx.Component, len(packages))
	for i, p := range packages {
		component, err := p.component()
		if err != nil {
			return nil, err
		}
		components[i] = component
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: "extension", Type: cdx.ComponentTypeApplication, Name: name, Version: version}}
	bom.Components = &components
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	return out.Bytes(), nil
}

func (p Package) component() (cdx.Component, error) {
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
	if err != nil {
		return cdx.Component{}, fmt.Errorf("SBOM: integrity of %s: %w", p.Name, err)
	}
	purl := "pkg:npm/" + strings.Replace(p.Name, "@", "%40", 1) + "@" + url.QueryEscape(p.Version)
	c := cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl, Scope: cdx.ScopeRequired,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(digest)}},
	}
	if scope, name, ok := strings.Cut(p.Name, "/"); ok {
		c.Group, c.Name = scope, name
	}
	if p.License != "" {
		c.Licenses = &cdx.Licenses{{License: &cdx.License{Name: p.License}}}
	}
	properties := []cdx.Property{{Name: "stile:signature", Value: p.Signature}}
	c.Properties = &properties
	return c, nil
}
