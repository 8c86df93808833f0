package host_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stilehost/stile/host"
)

// The authors' reference has the defaults.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/writing-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	l := host.DefaultLimits()
	for _, row := range []string{
		fmt.Sprintf("`memory` | %d MiB", l.Memory>>20),
		fmt.Sprintf("`cpu` | %g s", l.CPU.Seconds()),
		fmt.Sprintf("`wall` | %g s", l.Wall.Seconds()),
		fmt.Sprintf("`input`, `output` | %d MiB each", (l.Input+l.Output)>>21),
		message.NewPrinter(language.English).Sprintf("`handles` | %d", l.Handles),
		fmt.Sprintf("`pending` | %d", l.Pending),
		fmt.Sprintf("`nesting` | %d", l.Nesting),
	} {
		if !strings.Contains(string(page), "\n| "+row+" |") {
			t.Errorf("the page lacks the row %s", row)
		}
	}
}
