package npm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/github/go-spdx/v2/spdxexp"
	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"
)

// SBOM lists the packages of one version of an extension, and their dependencies according to the lockfile, as CycloneDX 1.6
// in JSON. Packages and lockfile come from a [Resolution]. Licences are SPDX identifiers or expressions if the packages use
// these. The same packages give the same bytes, without serial number and time. An invalid lockfile is a *LockError.
func SBOM(name, version string, packages []Package, lock []byte) ([]byte, error) {
	l, err := parseLock(lock, math.MaxInt)
	if err != nil {
		return nil, err
	}
	components := make([]cdx.Component, len(packages))
	for i, p := range packages {
		component, err := p.component()
		if err != nil {
			return nil, err
		}
		components[i] = component
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: rootRef, Type: cdx.ComponentTypeApplication, Name: name, Version: version}}
	bom.Components, bom.Dependencies = &components, l.graph(packages)
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	return out.Bytes(), nil
}

// rootRef is the extension's own name in its SBOM.
const rootRef = "extension"

// purl names a version of a package.
func purl(name, version string) string {
	return "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + url.QueryEscape(version)
}

// graph says which packages the extension and each package need, wherever in the tree they are.
func (l *lockfile) graph(packages []Package) *[]cdx.Dependency {
	needs := make(map[string]map[string]bool)
	for _, at := range append(l.installed(), "") {
		e, ref := l.Packages[at], rootRef
		if at != "" {
			ref = purl(l.nameAt(at), e.Version)
		}
		if needs[ref] == nil {
			needs[ref] = make(map[string]bool)
		}
		for _, list := range []specs{e.Dependencies, e.PeerDependencies} {
			for name := range list {
				if found := l.find(at, name); found != "" {
					needs[ref][purl(l.nameAt(found), l.Packages[found].Version)] = true
				}
			}
		}
	}
	refs := []string{rootRef}
	for _, p := range packages {
		refs = append(refs, purl(p.Name, p.Version))
	}
	graph := make([]cdx.Dependency, len(refs))
	for i, ref := range refs {
		on := sortedKeys(needs[ref])
		graph[i] = cdx.Dependency{Ref: ref, Dependencies: &on}
	}
	return &graph
}

// find returns the path of the package that a name means, as node looks for it: in the package's own folder, then in those around.
func (l *lockfile) find(at, name string) string {
	for {
		path := strings.TrimPrefix(at+"/"+modules+"/"+name, "/")
		if e, ok := l.Packages[path]; ok && !e.Optional {
			return path
		}
		if at == "" {
			return ""
		}
		at = strings.TrimSuffix(at[:strings.LastIndex("/"+at, "/"+modules+"/")], "/")
	}
}

func (p Package) component() (cdx.Component, error) {
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
	if err != nil {
		return cdx.Component{}, fmt.Errorf("SBOM: integrity of %s: %w", p.Name, err)
	}
	ref := purl(p.Name, p.Version)
	c := cdx.Component{
		BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: ref, Scope: cdx.ScopeRequired,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(digest)}},
	}
	if scope, name, ok := strings.Cut(p.Name, "/"); ok {
		c.Group, c.Name = scope, name
	}
	if p.License != "" {
		c.Licenses = &cdx.Licenses{licenseChoice(p.License)}
	}
	properties := []cdx.Property{{Name: "stile:signature", Value: p.Signature}}
	c.Properties = &properties
	return c, nil
}

// spdxIDs are the identifiers of the SPDX licence list, by themselves in small letters: they mean the same in any case.
var spdxIDs = sync.OnceValue(func() map[string]string {
	ids := make(map[string]string)
	for _, id := range append(spdxlicenses.GetLicenses(), spdxlicenses.GetDeprecated()...) {
		ids[strings.ToLower(id)] = id
	}
	return ids
})

// licenseChoice is an SPDX identifier or expression, or the words of a package that says something else.
func licenseChoice(text string) cdx.LicenseChoice {
	if id, ok := spdxIDs()[strings.ToLower(text)]; ok {
		return cdx.LicenseChoice{License: &cdx.License{ID: id}}
	}
	if isExpression(text) {
		return cdx.LicenseChoice{Expression: text}
	}
	return cdx.LicenseChoice{License: &cdx.License{Name: text}}
}

// isExpression reports whether a text is an SPDX expression. The parser panics for some texts that are not.
func isExpression(text string) (valid bool) {
	defer func() {
		if recover() != nil {
			valid = false
		}
	}()
	valid, _ = spdxexp.ValidateLicenses([]string{text})
	return valid
}
