package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/toolchain"
)

// TestNumbers looks for the lines of pages, of the contract and of the prelude that state a number of the code.
func TestNumbers(t *testing.T) {
	grouped := message.NewPrinter(language.English).Sprint
	drawn := grouped((&random.Sequence{}).Lists()["random.bytes.result"])
	for _, c := range []struct{ page, row, number string }{
		{"manifest.md", "| `tools` | the names of all tools", "at most " + grouped(extension.MaxTools) + " |"},
		{"manifest.md", "| `description` |", "at most " + grouped(extension.MaxDescription) + " bytes |"},
		{"manifest.md", "| `tests` |", fmt.Sprintf("at most %d |", extension.MaxTests)},
		{"../CONTRIBUTING.md", "You need Go", fmt.Sprintf("Node %d or later", toolchain.MinNode)},
		{"cli.md", "A value has", fmt.Sprintf("at most %d KiB.", secret.MaxValue>>10)},
		{"../toolchain/prelude/blob.ts", "export const piece =", strings.ReplaceAll(grouped(abi.MaxBytes), ",", "_") + ";"},
		{"../toolchain/prelude/random.ts", "const most =", strings.ReplaceAll(drawn, ",", "_") + ";"},
		{"../wit/deps/capability/random.wit", "    /// At most", drawn + " bytes a call."},
		{"../SECURITY.md", "| `blob.blob.text` |", fmt.Sprintf("| %d MiB, and `max` |", abi.MaxText>>20)},
		{"../SECURITY.md", "| `blob.writer.append-blob` |", fmt.Sprintf("| %d KiB |", abi.MaxBytes>>10)},
	} {
		text, err := os.ReadFile(c.page)
		if err != nil {
			t.Fatal(err)
		}
		_, row, found := strings.Cut(string(text), "\n"+c.row)
		if row, _, _ = strings.Cut(row, "\n"); !found || !strings.Contains(row, c.number) {
			t.Errorf("%s: the row %q has no %q: %s", c.page, c.row, c.number, row)
		}
	}
}

// TestLanguageFigures: the page says of each language what the results of the benchmarks say.
func TestLanguageFigures(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const head = "| language | component | compile |"
	table := func(text string) string {
		_, rest, found := strings.Cut(text, head)
		if rows, _, ended := strings.Cut(rest, "\n\n"); found && ended {
			return rows
		}
		return ""
	}
	page, results := table(read("languages.md")), table(read("../bench/RESULTS.md"))
	if page == "" || page != results {
		t.Errorf("languages.md must have the table of bench/RESULTS.md:\n%s%s", head, results)
	}
}
