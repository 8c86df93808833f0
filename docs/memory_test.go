package docs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestMemoryTable adds up what the parts of a server's memory take. The sum is below the figure above the table, and less than 1 GiB below.
func TestMemoryTable(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "the process of `stile serve` or `stile mcp` stays below ")
	var gib float64
	if _, err := fmt.Sscanf(after, "%g GiB", &gib); err != nil {
		t.Fatal(err)
	}
	_, after, _ = strings.Cut(after, "| part | bound | MiB |\n|---|---|---:|\n")
	table, _, _ := strings.Cut(after, "\n\n")
	sum, rows := 0, strings.Split(table, "\n")
	for _, row := range rows {
		cells := strings.Split(strings.TrimSuffix(row, " |"), "| ")
		mib, err := strconv.Atoi(strings.ReplaceAll(cells[len(cells)-1], ",", ""))
		if err != nil {
			t.Errorf("%s: %v", row, err)
		}
		sum += mib
	}
	if len(rows) < 20 || sum > int(gib*1024) || sum < int((gib-1)*1024) {
		t.Errorf("%d parts take %d MiB, and %g GiB are stated", len(rows), sum, gib)
	}
}
