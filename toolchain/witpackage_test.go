package toolchain_test

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	reference "go.bytecodealliance.org/wit"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

// everyType has what the contract does not.
const everyType = `/// Of the package
package some:types@1.2.3-rc.1;
interface shared {
  /// A thing
  resource thing;
  flags rights { read, write }
  record point { x: f32, y: f64 }
}
/// All of it
interface all {
  use shared.{thing, rights, point};
  enum colour {
    /// Like blood
    red, green }
  variant shape { circle(tuple<point, float>), nothing, many(list<shape-name>) }
  record float { value: f32 }
  record shape-name { %record: char, is: option<bool> }
  resource box {
    /// Makes one
    constructor(of: thing);
    open: func(key: borrow<thing>) -> result<thing, colour>;
    join: static func(a: box, b: box) -> box;
  }
  one: func(a: s8, b: u16, c: s64) -> result;
  two: func(r: rights) -> result<_, shape>;
  three: func() -> result<u8>;
  four: func(l: list<list<string>>);
}
interface empty {}
/// A world
world user { import all; export shared; export empty; }
`

var useNames = regexp.MustCompile(`(?m)^( *use [^{]*\{)(.*)(\};)$`)

// packageText is a package as wasm-tools understands it: its lines, in an order that does not depend on that of declarations.
func packageText(t *testing.T, from io.Reader, name string) string {
	t.Helper()
	known, err := reference.DecodeWIT(from)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, p := range known.Packages {
		if p.Name.String() != name {
			continue
		}
		p.Docs = reference.Docs{} // those of the package itself are not kept
		text := useNames.ReplaceAllStringFunc(p.WIT(nil, ""), func(line string) string {
			parts := useNames.FindStringSubmatch(line)
			names := strings.Split(parts[2], ", ")
			slices.Sort(names)
			return parts[1] + strings.Join(names, ", ") + parts[3]
		})
		return strings.Join(slices.Sorted(strings.Lines(text)), "")
	}
	t.Fatalf("there is no package %s", name)
	return ""
}

// What wasm-tools reads of the binary of a package is what it reads of the text.
func TestEncodePackage(t *testing.T) {
	contract, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	every, err := abi.Parse(everyType)
	if err != nil {
		t.Fatal(err)
	}
	_, extension, _ := strings.Cut(wit.Extension(), "package stile:extension@0.1.0;")
	texts := wit.Capability() + "\npackage stile:extension@0.1.0 {" + extension + "}\n"
	for _, c := range []struct {
		name, text string
		known      *abi.Resolve
	}{
		{"stile:capability@0.1.0", texts, contract},
		{"stile:extension@0.1.0", texts, contract},
		{"some:types@1.2.3-rc.1", everyType, every},
	} {
		wasm, err := toolchain.EncodePackage(c.known, c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if again, err := toolchain.EncodePackage(c.known, c.name); err != nil || !bytes.Equal(again, wasm) {
			t.Errorf("%s: other bytes the second time, %v", c.name, err)
		}
		if got, want := packageText(t, bytes.NewReader(wasm), c.name), packageText(t, strings.NewReader(c.text), c.name); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
	}
	for _, name := range []string{"stile:capability@0.2.0", "stile:capabilit@0.1.0", "stile:capability", ""} {
		if _, err := toolchain.EncodePackage(contract, name); err == nil {
			t.Errorf("there is a package %q", name)
		}
	}
}
