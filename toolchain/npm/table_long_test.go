//go:build long

package npm

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/printable"
)

var (
	table = flag.String("table", "", "write the results to this file")
	only  = flag.String("only", "", "try the tools whose names match this regular expression")
)

// TestLongPackages calls packages of the list for real.
func TestLongPackages(t *testing.T) {
	t.Parallel()
	chosen := readListed(t)
	if *only != "" {
		chosen = slices.DeleteFunc(chosen, func(l listed) bool { return !regexp.MustCompile(*only).MatchString(l.name) })
	}
	cacheDir, _ := cachetest.Dirs(t)
	outcomes := tryListed(t, cacheDir, chosen)
	if *table != "" {
		if err := os.WriteFile(*table, tableOf(chosen, outcomes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tableOf writes the results as a page.
func tableOf(chosen []listed, outcomes map[string]outcome) []byte {
	works, refused := 0, 0
	var rows bytes.Buffer
	slices.SortFunc(chosen, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
	for _, l := range chosen {
		o := outcomes[l.name]
		if o.works {
			works++
		} else if o.refused != "" {
			refused++
		}
		size, cold := "", ""
		if o.size > 0 {
			size = printable.Size(o.size)
		}
		if o.works {
			cold = fmt.Sprintf("%.1f ms", o.cold.Seconds()*1000)
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", l.name, strings.Join(l.packages, " "), strings.ReplaceAll(o.result, "|", `\|`), size, cold)
	}
	return fmt.Appendf(nil, `# npm packages

`+"`make packages`"+` builds a small tool for each of these npm packages, calls it, compares the result with what Node.js returns for the same code, and
writes this page. The tools are in [toolchain/npm/testdata/packages](../toolchain/npm/testdata/packages).

%d of %d work. %d need what Stile does not have yet: Intl, WebAssembly, or WebCrypto beyond digests. `+"`stile ext add`"+` and the tool extension_write refuse
a draft that uses them before anybody is asked, and say why and what to write instead. That counts as right.

The size is that of the component, with the packages in it. The cold call is the first call of a built component, on the machine that wrote the page.

| Tool | Packages | Result | Size | Cold call |
|---|---|---|---|---|
%s`, works, len(chosen), refused, rows.String())
}
